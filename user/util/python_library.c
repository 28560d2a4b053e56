// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "util/python_library.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/path.h"

/* sys.stdlib_module_names of 3.8 to 3.15, without modules that have no Python code and those that begin with _ */
static const char *const modules[] = {
	"abc",
	"aifc",
	"annotationlib",
	"antigravity",
	"argparse",
	"ast",
	"asynchat",
	"asyncio",
	"asyncore",
	"base64",
	"bdb",
	"binhex",
	"bisect",
	"bz2",
	"cProfile",
	"calendar",
	"cgi",
	"cgitb",
	"chunk",
	"cmd",
	"code",
	"codecs",
	"codeop",
	"collections",
	"colorsys",
	"compileall",
	"compression",
	"concurrent",
	"configparser",
	"contextlib",
	"contextvars",
	"copy",
	"copyreg",
	"crypt",
	"csv",
	"ctypes",
	"curses",
	"dataclasses",
	"datetime",
	"dbm",
	"decimal",
	"difflib",
	"dis",
	"distutils",
	"doctest",
	"dummy_threading",
	"email",
	"encodings",
	"ensurepip",
	"enum",
	"filecmp",
	"fileinput",
	"fnmatch",
	"formatter",
	"fractions",
	"ftplib",
	"functools",
	"genericpath",
	"getopt",
	"getpass",
	"gettext",
	"glob",
	"graphlib",
	"gzip",
	"hashlib",
	"heapq",
	"hmac",
	"html",
	"http",
	"idlelib",
	"imaplib",
	"imghdr",
	"imp",
	"importlib",
	"inspect",
	"io",
	"ipaddress",
	"json",
	"keyword",
	"lib-dynload",
	"lib2to3",
	"linecache",
	"locale",
	"logging",
	"lzma",
	"mailbox",
	"mailcap",
	"mimetypes",
	"modulefinder",
	"multiprocessing",
	"netrc",
	"nntplib",
	"ntpath",
	"nturl2path",
	"numbers",
	"opcode",
	"operator",
	"optparse",
	"os",
	"pathlib",
	"pdb",
	"pickle",
	"pickletools",
	"pipes",
	"pkgutil",
	"platform",
	"plistlib",
	"poplib",
	"posixpath",
	"pprint",
	"profile",
	"profiling",
	"pstats",
	"pty",
	"py_compile",
	"pyclbr",
	"pydoc",
	"pydoc_data",
	"queue",
	"quopri",
	"random",
	"re",
	"reprlib",
	"rlcompleter",
	"runpy",
	"sched",
	"secrets",
	"selectors",
	"shelve",
	"shlex",
	"shutil",
	"signal",
	"site",
	"smtpd",
	"smtplib",
	"sndhdr",
	"socket",
	"socketserver",
	"sqlite3",
	"sre_compile",
	"sre_constants",
	"sre_parse",
	"ssl",
	"stat",
	"statistics",
	"string",
	"stringprep",
	"struct",
	"subprocess",
	"sunau",
	"symbol",
	"symtable",
	"sysconfig",
	"tabnanny",
	"tarfile",
	"telnetlib",
	"tempfile",
	"test",
	"textwrap",
	"this",
	"threading",
	"timeit",
	"tkinter",
	"token",
	"tokenize",
	"tomllib",
	"trace",
	"traceback",
	"tracemalloc",
	"tty",
	"turtle",
	"turtledemo",
	"types",
	"typing",
	"unittest",
	"urllib",
	"uu",
	"uuid",
	"venv",
	"warnings",
	"wave",
	"weakref",
	"webbrowser",
	"wsgiref",
	"xdrlib",
	"xml",
	"xmlrpc",
	"zipapp",
	"zipfile",
	"zipimport",
	"zoneinfo",
};

static int compare_names(const void *a, const void *b)
{
	const char *name = a, *module = *(const char *const *)b;
	size_t len = strcspn(name, "/.");
	int order = strncmp(name, module, len);

	return order ? order : module[len] ? -1 : 0;
}

/* Does a path in the library's folder begin with one of its modules? Other code may lie there, too. */
static bool is_module(const char *path)
{
	return *path == '_' || bsearch(path, modules, ARRAY_LEN(modules), sizeof(modules[0]), compare_names);
}

/* The path behind "python3.11", "python3.13t" or "python311.zip"; NULL: the name is none of these. */
static const char *behind_version(const char *name)
{
	const char *at = name + strlen("python3");

	at += *at == '.';
	if (!isdigit((unsigned char)*at))
		return NULL;
	while (isdigit((unsigned char)*at))
		at++;
	at += *at == 't';
	if (!strncmp(at, ".zip", 4))
		at += 4;
	return *at == '/' ? at + 1 : NULL;
}

bool python_library__is_folder(const char *folder)
{
	const char *name = path__file_name(folder);
	char with_slash[32];

	snprintf(with_slash, sizeof(with_slash), "%s/", name);
	return *folder == '/' &&
	       (path__ends_with(name, ".zip") || (path__begins_with(name, "python3") && behind_version(with_slash)));
}

bool python_library__is_package(const char *file)
{
	return strstr(file, "/site-packages/") || strstr(file, "/dist-packages/");
}

const char *python_library__part(const char *file)
{
	/* a frozen program, such as one of PyInstaller, has relative names */
	if (*file != '/')
		return *file != '<' && is_module(file) ? file : NULL;
	for (const char *at = file; (at = strstr(at, "/python3")) != NULL; at++) {
		const char *path = behind_version(at + 1), *lib = NULL;

		if (at - file >= 4 && !memcmp(at - 4, "/lib", 4))
			lib = at - 4;
		else if (at - file >= 6 && !memcmp(at - 6, "/lib64", 6))
			lib = at - 6;
		if (path && lib)
			return is_module(path) ? lib : NULL;
	}
	return NULL;
}
