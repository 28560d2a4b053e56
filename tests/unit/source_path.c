// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which files may be quoted, and the names of node's functions, which have a file. */
#include "util/script_name.h"
#include "util/source_path.h"

#include "test.h"

TEST(files_of_the_user)
{
	CHECK(source_path__is_users("/srv/order_book.cpp"));
	CHECK(source_path__is_users("/srv/build/../src/main.rs"));
	CHECK(source_path__is_users("/srv/app.js"));
	CHECK(source_path__is_users("/usr/lib/shop/app.py"));
}

TEST(other_files)
{
	static const char *const files[] = {
		"./order_book.cpp",
		"order_book.cpp",
		"",
		"node:internal/timers.js",
		"/srv/key.pem",
		"/srv/cpp",
		"/srv/node_modules/express/index.js",
		"/root/.cargo/registry/src/x/serde-1.0/src/lib.rs",
		"/rustc/90b35a6/library/std/src/thread/mod.rs",
		"/root/go/pkg/mod/example.com/x@v1.0.0/x.go",
		"/usr/include/stdio.h",
		"/opt/gcc/include/c++/13/mutex",
		"/usr/lib/gcc/x86_64-linux-gnu/12/include/emmintrin.h",
		"/usr/lib/python3/dist-packages/yaml/loader.py",
		"/usr/lib/python3.11/json/encoder.py",
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		CHECK(!source_path__is_users(files[i]));
		if (source_path__is_users(files[i]))
			printf("# %s\n", files[i]);
	}
}

static void is_script(const char *name, const char *expected)
{
	struct script_name n;
	char text[256] = "(none)";

	if (script_name__parse(name, &n))
		snprintf(text, sizeof(text), "%.*s|%.*s|%u|%s", n.function_len, n.function, n.file_len, n.file, n.line,
			 n.symbol);
	CHECK_TEXT(text, expected);
}

TEST(functions_of_scripts)
{
	is_script("JS:^load /srv/a b.js:12:3", "load|/srv/a b.js|12|load /srv/a b.js:12:3");
	is_script("JS:* /srv/app.js:1:2", "(anonymous)|/srv/app.js|1| /srv/app.js:1:2");
	is_script("LazyCompile:~run file:///srv/app.mjs:7:1", "run|/srv/app.mjs|7|run file:///srv/app.mjs:7:1");
	is_script("JS:f file:///:1:1", "f|file:///|1|f file:///:1:1");
	is_script("JS:load", "(none)");
	is_script("main", "(none)");
}

TEST_MAIN()
