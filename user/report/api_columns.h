/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Columns of reports that count calls by name; their headings are those of nsys's cuda_api_sum and osrt_sum. */
#pragma once

#include "output/table.h"

/* Indices of the columns that findings quote */
enum { API_PERCENT = 0, API_NAME = 8, API_COLUMN_COUNT = 9 };

#define API_COLUMNS                                                                                                  \
	{ "time_percent", "Time (%)", VALUE_DOUBLE, SHOW_PERCENT },                                                  \
		{ "total_ns", "Total Time (ns)", VALUE_U64, SHOW_COUNT },                                            \
		{ "calls", "Num Calls", VALUE_U64, SHOW_COUNT }, { "avg_ns", "Avg (ns)", VALUE_DOUBLE, SHOW_COUNT }, \
		{ "median_ns", "Med (ns)", VALUE_DOUBLE, SHOW_COUNT },                                               \
		{ "min_ns", "Min (ns)", VALUE_U64, SHOW_COUNT }, { "max_ns", "Max (ns)", VALUE_U64, SHOW_COUNT },    \
		{ "stddev_ns", "StdDev (ns)", VALUE_DOUBLE, SHOW_COUNT },                                            \
	{                                                                                                            \
		"name", "Name", VALUE_TEXT, SHOW_PLAIN                                                               \
	}
