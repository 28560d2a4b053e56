// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "python/objects.h"

#include "python/task_layout.h"
#include "util/array.h"

#include <string.h>
#include <unistd.h>

/* Include/cpython/object.h: PyTypeObject */
#define TYPE_NAME	 24
#define TYPE_BASIC_SIZE	 32
#define TYPE_FLAGS	 168
#define TYPE_DICT_OFFSET 288
#define FLAG_HEAP	 (1 << 9) /* Py_TPFLAGS_HEAPTYPE: a class */
#define FLAG_DICT	 (1 << 4) /* Py_TPFLAGS_MANAGED_DICT, from 3.11 on: its instances have attributes */
/* PyHeapTypeObject.ht_cached_keys: 3.11, 3.12 to 3.14, and 3.15 */
#define TYPE_KEYS_311 872
#define TYPE_KEYS     880
#define TYPE_KEYS_315 888
#define TYPES_MAX     16384
#define NAME_MAX_     40

/* Include/internal/pycore_dict.h: PyDictKeysObject, and Include/cpython/dictobject.h: PyDictObject */
#define DICT_KEYS    32
#define DICT_VALUES  40
#define KEYS_ENTRIES 32 /* of the indices, which precede the entries */
#define KEYS_GENERAL 0 /* dk_kind: entries with a hash */
#define ENTRIES_MAX  65536

struct keys_head {
	u64 references;
	u8 log2_size, log2_index_bytes, kind, pad[5];
	u64 usable, entries;
};

/* 3.8 to 3.10: Objects/dict-common.h; entries always have a hash */
struct old_keys_head {
	u64 references, size, lookup, usable, entries;
};

/* Include/cpython/setobject.h: PySetObject */
#define SET_MASK  32
#define SET_TABLE 40
#define SET_MAX	  (1U << 20)

/* PyVarObject.ob_size; PyListObject.ob_item; PyTupleObject.ob_item until 3.13 and later */
#define SEQUENCE_SIZE	16
#define LIST_ITEMS	24
#define TUPLE_ITEMS_313 24
#define TUPLE_ITEMS	32

static enum object_type named(const char *name)
{
	static const struct {
		const char *name;
		enum object_type type;
	} names[] = {
		{ "coroutine", OBJECT_COROUTINE },
		{ "generator", OBJECT_COROUTINE },
		{ "async_generator", OBJECT_COROUTINE },
		{ "coroutine_wrapper", OBJECT_AWAITS_GENERATOR },
		{ "async_generator_asend", OBJECT_AWAITS_GENERATOR },
		{ "async_generator_athrow", OBJECT_AWAITS_GENERATOR },
		{ "dict", OBJECT_DICT },
		{ "set", OBJECT_SET },
		{ "method", OBJECT_METHOD },
		{ "function", OBJECT_FUNCTION },
		{ "module", OBJECT_MODULE },
		{ "int", OBJECT_INT },
		{ "StreamReader", OBJECT_STREAM },
		{ "NoneType", OBJECT_NONE },
		{ "tuple", OBJECT_TUPLE },
		{ "list", OBJECT_LIST },
		{ "cell", OBJECT_CELL },
		{ "functools.partial", OBJECT_PARTIAL },
		{ "_asyncio.Future", OBJECT_FUTURE },
		{ "_GatheringFuture", OBJECT_FUTURE },
		{ "_SelectorSocketTransport", OBJECT_TRANSPORT },
	};

	for (u32 i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i].name))
			return names[i].type;
	return OBJECT_OTHER;
}

/* Types are recognized by their names, once for each address. */
enum object_type object__type(struct snapshot *l, u64 object)
{
	u64 type = object__is_address(object) ? snapshot__word(l, object + OBJECT_TYPE) : 0, name;
	char text[NAME_MAX_] = "";
	u8 *known;

	if (!object__is_address(type))
		return OBJECT_OTHER;
	known = map__find(&l->types, &type);
	if (known)
		return *known;
	name = snapshot__word(l, type + TYPE_NAME);
	/* a text at the end of a mapping is read in part */
	if (name >> 47 || pread(l->mem, text, sizeof(text) - 1, (off_t)name) <= 0)
		return OBJECT_OTHER;
	if (l->types.n == TYPES_MAX)
		map__free(&l->types);
	known = map__get(&l->types, &type);
	if (known)
		*known = named(text);
	return named(text);
}

static bool is_text(const struct snapshot *l, u64 str, const char *text)
{
	u8 bytes[128] = { 0 };
	size_t len = strlen(text), size = l->layout.str_ascii + len;
	u64 length;

	if (!object__is_address(str) || size > sizeof(bytes) || !snapshot__read(l, str, bytes, size))
		return false;
	memcpy(&length, bytes + 16, sizeof(length));
	return length == len && !memcmp(bytes + l->layout.str_ascii, text, len);
}

/* Where the entries of a dictionary's keys are, and how many words each has. */
struct keys {
	u64 at, n;
	u32 words; /* hash, key, value; or key, value */
};

static bool read_old_keys(const struct snapshot *l, u64 keys, struct keys *out)
{
	struct old_keys_head head;

	if (!snapshot__read(l, keys, &head, sizeof(head)) || head.size >> 32 || head.entries > ENTRIES_MAX)
		return false;
	out->at = keys + sizeof(head) + head.size * (head.size <= 0xff ? 1 : head.size <= 0xffff ? 2 : 4);
	out->n = head.entries;
	out->words = 3;
	return true;
}

static bool read_keys(const struct snapshot *l, u64 keys, struct keys *out)
{
	struct keys_head head;

	if (l->layout.version < 0x030b)
		return read_old_keys(l, keys, out);
	if (!snapshot__read(l, keys, &head, sizeof(head)) || head.log2_index_bytes > 32 || head.entries > ENTRIES_MAX)
		return false;
	out->at = keys + KEYS_ENTRIES + (1ULL << head.log2_index_bytes);
	out->n = head.entries;
	out->words = head.kind == KEYS_GENERAL ? 3 : 2;
	return true;
}

u64 object__item(struct snapshot *l, u64 dict, const char *key)
{
	u64 keys = object__type(l, dict) == OBJECT_DICT ? snapshot__word(l, dict + DICT_KEYS) : 0;
	u64 values = keys ? snapshot__word(l, dict + DICT_VALUES) : 0, entry[3];
	struct keys k;

	/* dictionaries of modules are never split into keys and values */
	if (!keys || values || !read_keys(l, keys, &k))
		return 0;
	for (u64 i = 0; i < k.n; i++) {
		if (!snapshot__read(l, k.at + i * k.words * sizeof(u64), entry, k.words * sizeof(u64)))
			return 0;
		if (is_text(l, entry[k.words - 2], key))
			return entry[k.words - 1];
	}
	return 0;
}

u64 object__of_module(struct snapshot *l, u64 interpreter, const char *module, const char *name)
{
	u32 modules = task_layout__modules(l);
	u64 object = modules ? object__item(l, snapshot__word(l, interpreter + modules), module) : 0;

	return object__type(l, object) == OBJECT_MODULE ?
		       object__item(l, snapshot__word(l, object + MODULE_DICT), name) :
		       0;
}

/* Where the keys and the values of an instance's attributes are. values 0: the values are among the keys' entries. */
struct attributes {
	u64 keys, values;
};

/*
 * Until 3.10 an instance has a dictionary. 3.11 and 3.12 point to its values before the object, later versions have
 * them behind it, and the keys are those of its type; there too it may have got a dictionary.
 */
static bool attributes_of(struct snapshot *l, u64 instance, struct attributes *out)
{
	u64 type = snapshot__word(l, instance + OBJECT_TYPE), at;
	u32 version = l->layout.version, flags = (u32)snapshot__word(l, type + TYPE_FLAGS);

	if (!(flags & FLAG_HEAP) || !snapshot__word(l, type + TYPE_DICT_OFFSET) ||
	    (version >= 0x030b && !(flags & FLAG_DICT)))
		return false;
	if (version == 0x030b && (out->values = snapshot__word(l, instance - 32)) != 0)
		goto of_type;
	if (version < 0x030b)
		at = snapshot__word(l, instance + snapshot__word(l, type + TYPE_DICT_OFFSET));
	else
		at = snapshot__word(l, instance - 24);
	if (version == 0x030c && (at & 1)) {
		out->values = at + 1;
		goto of_type;
	}
	if (version >= 0x030d && !at) {
		out->values = instance + snapshot__word(l, type + TYPE_BASIC_SIZE) + 8;
		goto of_type;
	}
	if (object__type(l, at) != OBJECT_DICT)
		return false;
	out->keys = snapshot__word(l, at + DICT_KEYS);
	out->values = snapshot__word(l, at + DICT_VALUES);
	out->values += out->values && version >= 0x030d ? 8 : 0;
	return out->keys != 0;
of_type:
	out->keys = snapshot__word(l, type + (version < 0x030c ? TYPE_KEYS_311 :
					      version < 0x030f ? TYPE_KEYS :
								 TYPE_KEYS_315));
	return true;
}

u64 object__attribute(struct snapshot *l, u64 instance, const char *name)
{
	struct attributes a;
	u64 entry[3];
	struct keys k;

	if (!object__is_address(instance) || !attributes_of(l, instance, &a) || !read_keys(l, a.keys, &k))
		return 0;
	for (u64 i = 0; i < k.n; i++) {
		if (!snapshot__read(l, k.at + i * k.words * sizeof(u64), entry, k.words * sizeof(u64)))
			return 0;
		if (is_text(l, entry[k.words - 2], name))
			return a.values ? snapshot__word(l, a.values + i * sizeof(u64)) : entry[k.words - 1];
	}
	return 0;
}

s64 object__number(struct snapshot *l, u64 object)
{
	u64 words[2]; /* ob_size, from 3.12 on lv_tag; the first digit of 30 bits, and more */
	u64 one = l->layout.version < 0x030c ? 1 : 1 << 3;
	u64 small = l->layout.version < 0x030e ? 0 : 1 << 2; /* of the interpreter's own small numbers */

	if (object__type(l, object) != OBJECT_INT || !snapshot__read(l, object + 16, words, sizeof(words)) ||
	    (words[0] & ~small) != one)
		return -1;
	return (s64)(words[1] & 0x3fffffff);
}

void object__each_value(struct snapshot *l, u64 dict, u32 max, void (*fn)(struct snapshot *l, u64 value, void *arg),
			void *arg)
{
	u64 keys = object__type(l, dict) == OBJECT_DICT ? snapshot__word(l, dict + DICT_KEYS) : 0, entry[3];
	struct keys k;

	if (!keys || !read_keys(l, keys, &k))
		return;
	for (u64 i = 0; i < k.n && max; i++) {
		if (!snapshot__read(l, k.at + i * k.words * sizeof(u64), entry, k.words * sizeof(u64)))
			return;
		/* 0: removed */
		if (!entry[k.words - 1])
			continue;
		fn(l, entry[k.words - 1], arg);
		max--;
	}
}

bool object__attribute_words(struct snapshot *l, u64 instance, u64 words[OBJECT_WORDS])
{
	struct attributes a;
	struct keys k;

	return object__is_address(instance) && attributes_of(l, instance, &a) &&
	       (a.values || read_keys(l, a.keys, &k)) &&
	       snapshot__read(l, a.values ? a.values : k.at, words, OBJECT_WORDS * sizeof(u64));
}

u64 object__first_set(struct snapshot *l, u64 instance)
{
	u64 words[OBJECT_WORDS];

	if (!object__attribute_words(l, instance, words))
		return 0;
	for (u32 i = 0; i < OBJECT_WORDS; i++)
		if (object__type(l, words[i]) == OBJECT_SET)
			return words[i];
	return 0;
}

u32 object__elements(struct snapshot *l, u64 sequence, u64 *words, u32 max)
{
	enum object_type type = object__type(l, sequence);
	u64 n = snapshot__word(l, sequence + SEQUENCE_SIZE), at;

	if (type == OBJECT_LIST)
		at = snapshot__word(l, sequence + LIST_ITEMS);
	else if (type == OBJECT_TUPLE)
		at = sequence + (l->layout.version < 0x030e ? TUPLE_ITEMS_313 : TUPLE_ITEMS);
	else
		return 0;
	n = n < max ? n : max;
	return snapshot__read(l, at, words, n * sizeof(u64)) ? (u32)n : 0;
}

int object__each_element(struct snapshot *l, u64 set, u32 max, int (*fn)(struct snapshot *l, u64 element, void *arg),
			 void *arg)
{
	u64 mask = snapshot__word(l, set + SET_MASK), table = snapshot__word(l, set + SET_TABLE);
	struct {
		u64 element, hash;
	} entries[64];
	int err = 0;

	if (mask >= SET_MAX || (mask & (mask + 1)) || mask < 7)
		return 0;
	for (u64 i = 0; i <= mask && !err; i += ARRAY_LEN(entries)) {
		u32 n = mask + 1 - i < ARRAY_LEN(entries) ? (u32)(mask + 1 - i) : ARRAY_LEN(entries);

		if (!snapshot__read(l, table + i * sizeof(entries[0]), entries, n * sizeof(entries[0])))
			return 0;
		for (u32 k = 0; k < n && !err && max; k++) {
			/* a removed element leaves an object with the hash -1 */
			if (!object__is_address(entries[k].element) || entries[k].hash == ~0ULL)
				continue;
			err = fn(l, entries[k].element, arg);
			max--;
		}
	}
	return err;
}
