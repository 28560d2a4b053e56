/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the worker asks the attacher: one message of a SOCK_SEQPACKET socket each way. See attach/attacher.h. */
#ifndef SONDE_ATTACH_ATTACHER_WIRE_H
#define SONDE_ATTACH_ATTACHER_WIRE_H

#include "attach/attacher.h"
#include "sandbox/message.h"

enum attacher_op {
	/* n offsets and n cookies follow, with counters n of those too; the file's descriptor comes beside it; see -EBADMSG */
	OP_SITES,
	OP_DETACH_SITES,
	OP_DROP, /* the links of n objects, whose numbers follow */
	OP_ATTACH,
	OP_DETACH,
	OP_ITER, /* answered with a descriptor */
	OP_SIGNAL,
	OP_MAP_SET, /* program: the map's number (attach/steering.h); a key and a value follow; start: flags */
	OP_MAP_DELETE, /* likewise, a key follows */
	OP_LACKS, /* answered with text, its length as result: what the attacher lacks of its confinement */
	OP_OPENER, /* answered with a descriptor of the opener's socket */
	/* to the opener (attach/opener.h) */
	OP_OPEN, /* a path with its NUL follows; answered with a descriptor */
	OP_OPEN_DEBUG, /* likewise; the object's descriptor comes beside it */
	OP_MAPS, /* answered with the text, see struct attacher_reply */
	OP_READ, /* likewise with what the descriptor beside it has to be read */
	OP_IMAGE, /* answered with struct process_image */
	OP_USER, /* answered with the process's effective user */
	OP_PROCESSES, /* as OP_MAPS, with the numbers of all processes, a line each */
};

struct attacher_request {
	u32 op;
	u32 program; /* index in struct probes */
	s32 pid;
	u32 method; /* enum attach_method */
	u32 returns; /* 1: OP_SITES puts them on the returns */
	u32 object; /* OP_SITES */
	u32 counters; /* 1: OP_SITES has them */
	u32 n; /* sites; bytes of the path; the signal; ticks a second */
	u64 seq; /* of this request; its answers have the same */
	u64 start, end, dev, ino; /* OP_OPEN: the mapping and its backing inode */
	u64 magic; /* OP_OPEN: of its file system, 0: not known */
	char data[ATTACHER_SITES_MAX * 3 * sizeof(u64)];
};

#define REQUEST_HEAD offsetof(struct attacher_request, data)

struct attacher_reply {
	u64 seq; /* of the request */
	s32 result;
	s32 refused; /* syscalls__refused() of the attacher */
	union {
		struct process_image image; /* OP_IMAGE alone */
		u32 user; /* OP_USER */
		u8 verdicts[ATTACHER_SITES_MAX]; /* OP_SITES with result -EBADMSG: enum site_verdict of each */
		char bytes[65536]; /* OP_LACKS; OP_MAPS, OP_READ: result bytes, until a reply with result 0 (the end) or an error */
	};
};

#define REPLY_HEAD offsetof(struct attacher_reply, image)

/* attacher_prepare.c: closes all but these descriptors and those of programs and maps. 0 or negative errno. */
int attacher__close_others(int sock, int command_fd, const struct probes *probes, const struct steering_maps *maps);
void attacher__raise_limits(void);
/* The attacher's side: answers until the socket ends. */
void attacher__serve(int sock, const struct probes *probes, const struct attacher_options *options)
	__attribute__((noreturn));

#endif
