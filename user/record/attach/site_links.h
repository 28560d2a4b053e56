/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The probes in files: numbers and attaches them, and detaches and attaches again those of a family. */
#pragma once

#include "core/maps.h"
#include "core/meta.h"
#include "kernel/link.h"
#include "kernel/probes.h"

struct session;
struct schema_family;
struct stored_link;

struct site_links {
	struct {
		u32 n;
		u64 offset; /* of the first one */
		u8 verdict; /* enum site_verdict */
	} refused; /* sites that the attacher refused, of the family that is being attached */
	u32 since_wait; /* sites that were attached since site_links__add() last waited */
	/* links of families whose probes are detached and attached again (family_host.detaches) */
	struct stored_link *stored;
	u32 n_stored;
	u64 off; /* FAMILY_BIT of the families that `sonde control` has detached */
	u64 off_since[FAMILY_MAX]; /* ns */
	/* the warning about each account's first object that contains a library with stripped symbols */
	struct hidden_note {
		char *text;
		const struct schema_family *family; /* that probes the library */
		u32 account;
	} * hidden;
	u32 n_hidden;
	u64 probed; /* FAMILY_BIT of the families that probe an object */
};

/*
 * In link.c: attaches any number of sites; returns the first error; *attached (may be NULL) grows by the number of
 * attached sites.
 */
int site_links__add(struct session *s, const struct program *p, enum attach_method method,
		    const struct link_sites *sites, u32 *attached);
/* Detaches all sites. */
void site_links__detach(struct session *s);
void site_links__free(struct site_links *l);

/* In stored.c. */
/* The object number of a program's links. */
u32 site_links__object(const struct program *p, u32 object);
/* Are the probes of this program detached now, so that new ones are stored and not attached? */
bool site_links__are_detached(const struct session *s, const struct program *p);
/* Stores the arguments of site_links__add() if the family's probes are detached and attached again. */
int site_links__store(struct site_links *l, const struct program *p, enum attach_method method,
		      const struct link_sites *sites);
/* Drops the stored links of an object; 0: of all. */
void site_links__forget(struct site_links *l, u32 object);

/* Detaches the probes of a family (family_host.toggles), or attaches them again. 0 or negative errno. */
int site_links__toggle(struct session *s, const struct schema_family *f, bool on);
/* The recording ends: notes which families were off until then. */
void site_links__note_off(struct session *s);

/* In attach.c: warns that libraries with stripped symbols are not probed, unless another family records their work. */
void site_links__warn_hidden(struct session *s);

/* In tracepoints.c. */
int tracepoints__attach(struct session *s, char *err, size_t len);
/* alone: detaches those of families without other probes (family core serves all); else those of the others, too. */
void tracepoints__detach(struct session *s, bool alone);
