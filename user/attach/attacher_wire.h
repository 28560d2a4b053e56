/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The messages between the worker and the attacher, over a SOCK_SEQPACKET socket: one request, one reply. See
 * attach/attacher.h.
 */
#pragma once

#include "attach/attacher.h"
#include "sandbox/message.h"

enum attacher_op {
	/*
	 * n offsets and n cookies follow, and n more offsets if `counters` is set; the file's descriptor is passed
	 * with the message. May be answered with -EBADMSG.
	 */
	OP_SITES,
	OP_DETACH_SITES,
	OP_DROP, /* closes the links of n objects, whose numbers follow */
	OP_ATTACH,
	OP_DETACH,
	OP_ITER, /* answered with a descriptor */
	OP_SIGNAL,
	OP_MAP_SET, /* program: the map's number (attach/steering.h); a key and a value follow; start: flags */
	OP_MAP_DELETE, /* the same, only a key follows */
	/* answered with text, its length as the result: the parts of the confinement that could not be set up */
	OP_LACKS,
	OP_OPENER, /* answered with a descriptor of the opener's socket */
	OP_TASKS, /* answered with a descriptor of the socket of a process's task reader */
	/* Requests to the opener (attach/opener.h). */
	OP_OPEN, /* a path with its NUL follows; answered with a descriptor */
	OP_OPEN_DEBUG, /* the same; the object's descriptor is passed with the message */
	OP_OPEN_PERF_MAP, /* account: of the process; answered with a descriptor */
	OP_SOURCE, /* a path with its NUL follows; answered with the file's text as OP_MAPS */
	OP_MAPS, /* answered with the text, see struct attacher_reply */
	OP_READ, /* answered with all bytes that can be read from the descriptor in the message */
	OP_IMAGE, /* answered with struct process_image */
	OP_USER, /* answered with the account that is responsible for the process */
	OP_PROCESSES, /* as OP_MAPS, with the pids of all processes, a line each */
};

struct attacher_request {
	u32 op;
	u32 program; /* index in struct probes; OP_MAP_SET, OP_MAP_DELETE: the map's number (attach/steering.h) */
	s32 pid;
	u32 method; /* enum attach_method */
	u32 returns; /* 1: OP_SITES probes the returns */
	u32 object; /* OP_SITES */
	u32 account; /* OP_OPEN_PERF_MAP */
	u32 counters; /* 1: OP_SITES has counters */
	u32 n; /* number of sites; bytes of the path; the signal; ticks per second */
	u64 seq; /* number of this request; its replies have the same */
	u64 start, end, dev, ino; /* OP_OPEN: the mapping and its backing inode */
	u64 built; /* OP_SOURCE */
	char data[ATTACHER_SITES_MAX * 3 * sizeof(u64)];
};

#define REQUEST_HEAD offsetof(struct attacher_request, data)

struct attacher_reply {
	u64 seq; /* of the request */
	s32 result;
	s32 refused; /* syscalls__refused() of the attacher */
	union {
		struct process_image image; /* only OP_IMAGE */
		u32 user; /* OP_USER */
		u8 verdicts[ATTACHER_SITES_MAX]; /* OP_SITES with result -EBADMSG: enum site_verdict of each site */
		/*
		 * OP_LACKS; OP_SOURCE, OP_MAPS, OP_READ: `result` bytes per reply, until a reply with result 0 (the
		 * end) or an error
		 */
		char bytes[65536];
	};
};

#define REPLY_HEAD offsetof(struct attacher_reply, image)

/*
 * In attacher_prepare.c: closes all descriptors except for these (-1: none) and those of programs and maps. Returns 0
 * or negative errno.
 */
int attacher__close_others(int sock, int command_fd, const struct probes *probes, const struct steering_maps *maps);
/* Closes all descriptors above those of standard error, except for these, which it sorts. */
void attacher__close_all_but(int *keep, int n);
void attacher__raise_limits(void);
/* The attacher's main function: answers requests until the socket is closed. */
void attacher__serve(int sock, const struct probes *probes, const struct attacher_options *options)
	__attribute__((noreturn));
