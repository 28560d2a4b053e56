// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/json.h"

#define EXACT (1LL << 53) /* doubles hold every integer up to here */

bool json__add_s64(struct cJSON *object, const char *name, s64 v)
{
	char digits[32];

	if (v <= EXACT && v >= -EXACT)
		return cJSON_AddNumberToObject(object, name, v);
	snprintf(digits, sizeof(digits), "%lld", v);
	return cJSON_AddStringToObject(object, name, digits);
}

bool json__add_u64(struct cJSON *object, const char *name, u64 v)
{
	char digits[32];

	if (v <= EXACT)
		return cJSON_AddNumberToObject(object, name, v);
	snprintf(digits, sizeof(digits), "%llu", v);
	return cJSON_AddStringToObject(object, name, digits);
}

bool json__add_text(struct cJSON *object, const char *name, const char *text)
{
	return !text || cJSON_AddStringToObject(object, name, text);
}

static bool all_digits(const char *s)
{
	return *s && strlen(s) == strspn(s, "0123456789");
}

s64 json__s64(const struct cJSON *object, const char *name, bool *ok)
{
	const struct cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	if (cJSON_IsNumber(item) && item->valuedouble >= -EXACT && item->valuedouble <= EXACT &&
	    item->valuedouble == (s64)item->valuedouble)
		return item->valuedouble;
	if (cJSON_IsString(item) && all_digits(item->valuestring + (*item->valuestring == '-'))) {
		s64 v;

		errno = 0;
		v = strtoll(item->valuestring, NULL, 10);
		if (!errno)
			return v;
	}
	if (ok)
		*ok = false;
	return 0;
}

u64 json__u64(const struct cJSON *object, const char *name, u64 max, bool *ok)
{
	const struct cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
	u64 v = 0;
	bool good = false;

	if (cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= EXACT &&
	    item->valuedouble == (u64)item->valuedouble) {
		v = item->valuedouble;
		good = v <= max;
	} else if (cJSON_IsString(item) && all_digits(item->valuestring)) {
		errno = 0;
		v = strtoull(item->valuestring, NULL, 10);
		good = !errno && v <= max;
	}
	if (!good && ok)
		*ok = false;
	return good ? v : 0;
}

const char *json__text(const struct cJSON *object, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}
