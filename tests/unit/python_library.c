// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which files are Python's standard library, and which only lie in folders with such names. */
#include "util/python_library.h"

#include "test.h"

static void is_part(const char *file, const char *part)
{
	const char *got = python_library__part(file);

	CHECK_TEXT(got ? got : "(none)", part);
}

TEST(the_standard_library)
{
	is_part("/usr/lib/python3.11/json/encoder.py", "/lib/python3.11/json/encoder.py");
	is_part("/opt/v/lib64/python3.13t/threading.py", "/lib64/python3.13t/threading.py");
	is_part("/usr/lib/python311.zip/os.py", "/lib/python311.zip/os.py");
	is_part("/usr/lib/python3.11/_weakrefset.py", "/lib/python3.11/_weakrefset.py");
	/* a frozen program's names */
	is_part("threading.py", "threading.py");
	is_part("json/encoder.py", "json/encoder.py");
}

TEST(code_that_lies_beside_or_below_it)
{
	is_part("/srv/lib/python3-tools/train.py", "(none)");
	is_part("/srv/lib/python3utils/json.py", "(none)");
	is_part("/srv/lib/python3.11/myapp/train.py", "(none)");
	is_part("/usr/lib/python3.11/site-packages/numpy/core.py", "(none)");
	is_part("/usr/lib/python3/dist-packages/yaml/loader.py", "(none)");
	is_part("/home/me/python3.11/json/encoder.py", "(none)");
	is_part("/usr/lib/python3.11/jsonlines.py", "(none)");
	is_part("app.py", "(none)");
	is_part("<string>", "(none)");
}

TEST(folders)
{
	CHECK(python_library__is_folder("/usr/lib/python3.11"));
	CHECK(python_library__is_folder("/nix/store/x-python3/lib/python3.13t"));
	CHECK(python_library__is_folder("/opt/app/_internal/base_library.zip"));
	/* a process may state any folder as its library's */
	CHECK(!python_library__is_folder("/srv/app"));
	CHECK(!python_library__is_folder("/usr/lib/python3-tools"));
	CHECK(!python_library__is_folder("/usr/lib/python3"));
	CHECK(!python_library__is_folder("/"));
	CHECK(!python_library__is_folder(""));
}

TEST_MAIN()
