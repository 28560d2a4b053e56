// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The screen of `sonde top`: a heading, GILs, holders and waiters, functions; as many rows of each as fit. */
#include "cmd/top.h"

#include <curses.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "output/text.h"

static struct {
	SCREEN *screen;
	bool paused, help;
	enum top_sort sort;
	int row; /* the next one to be written */
} s;

void top_screen__prepare(void)
{
	setlocale(LC_CTYPE, "");
	s.screen = newterm(NULL, stdout, stdin);
	if (s.screen)
		endwin();
}

bool top_screen__open(void)
{
	if (!s.screen)
		return false;
	set_term(s.screen);
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	return true;
}

void top_screen__close(void)
{
	if (!s.screen)
		return;
	endwin();
	delscreen(s.screen);
	s.screen = NULL;
}

bool top_screen__paused(void)
{
	return s.paused;
}

enum top_key top_screen__key(void)
{
	int key = getch();

	switch (key) {
	case 'q':
	case 'Q':
		return TOP_QUIT;
	case 'p':
	case 'P':
		s.paused = !s.paused;
		return TOP_REDRAW;
	case 's':
	case 'S':
		s.sort = (s.sort + 1) % TOP_SORTS;
		return TOP_REDRAW;
	case '?':
	case 'h':
		s.help = !s.help;
		return TOP_REDRAW;
	case 12: /* Ctrl-L redraws all, as another program may have written to the terminal */
		clearok(stdscr, TRUE);
		return TOP_REDRAW;
	case KEY_RESIZE:
		return TOP_REDRAW;
	}
	return TOP_NOTHING;
}

/* Draws one line, cut at the window's edge. Targets choose the names in it, so control characters are escaped. */
static void draw_line(int attributes, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void draw_line(int attributes, const char *format, ...)
{
	char text[1024], *clean;
	va_list args;

	if (s.row >= LINES)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	clean = text__clean(text, strlen(text));
	attrset(attributes);
	mvaddnstr(s.row++, 0, clean ? clean : "", COLS);
	attrset(A_NORMAL);
	clrtoeol();
	free(clean);
}

static void draw_help(void)
{
	draw_line(A_BOLD, "sonde top");
	draw_line(0, " ");
	draw_line(0, "  q  quit");
	draw_line(0, "  p  freeze the screen; recording continues");
	draw_line(0, "  s  sort functions by self time or by total time");
	draw_line(0, "  ?  this help, and back");
	draw_line(0, " ");
	draw_line(0, "GIL load: the share of the time in which at least one thread waited for this interpreter's GIL.");
	draw_line(
		0,
		"Holder -> waiter: code that held the GIL, and code that waited for it at the same time, each named by");
	draw_line(0, "the innermost function of the user's own code.");
	draw_line(0, "Functions: CPU time of all traced processes, by samples; self is without what a function calls.");
}

static void draw_gils(const struct top_view *v, int rows)
{
	draw_line(A_REVERSE, "%8s %-16s %4s %6s %9s %12s %8s %8s", "PID", "PROCESS", "GIL", "LOAD%", "WAITS", "WAITED",
		  "THREADS", "DEEPEST");
	for (u32 i = 0; i < v->n_gils && (int)i < rows; i++) {
		const struct top_gil *g = &v->gils[i];

		draw_line(0, "%8u %-16s %4u %6.1f %9llu %12s %8u %8u", g->pid, g->name, g->number, g->load_percent,
			  g->waits, TEXT_NS(g->wait_ns), g->threads, g->deepest);
	}
	if (!v->n_gils)
		draw_line(A_DIM, "%8s no thread waited for a GIL", "");
}

static void draw_pairs(const struct top_view *v, int rows)
{
	draw_line(A_REVERSE, "%8s %6s %12s %9s  %s", "PID", "SHARE%", "WAITED", "WAITS", "HOLDER -> WAITER");
	for (u32 i = 0; i < v->n_pairs && (int)i < rows; i++) {
		const struct gil_blamed *p = &v->pairs[i];

		draw_line(0, "%8u %6.1f %12s %9llu  %s -> %s", p->pid, p->share_percent, TEXT_NS(p->wait_ns), p->waits,
			  p->holder, p->waiter);
	}
}

static void draw_functions(const struct top_view *v)
{
	draw_line(A_REVERSE, "%6s%c %6s%c %12s  %s", "SELF%", s.sort == TOP_SELF ? '*' : ' ', "TOTAL%",
		  s.sort == TOP_TOTAL ? '*' : ' ', "SELF", "FUNCTION");
	for (u32 i = 0; i < v->n_functions && s.row < LINES; i++) {
		const struct top_function *f = &v->functions[i];

		draw_line(0, "%6.1f  %6.1f  %12s  %s", f->self_percent, f->total_percent, TEXT_NS(f->self_ns), f->name);
	}
}

void top_screen__draw(struct top_view *v, const struct top_status *status)
{
	int rows = LINES > 24 ? (LINES - 9) / 4 : 4;

	top_view__sort(v, s.sort);
	s.row = 0;
	erase();
	if (s.help) {
		draw_help();
	} else if (!status->has_figures) {
		draw_line(A_BOLD, "sonde top  tracing; the first figures come in a moment   q quit  ? help");
		draw_line(A_DIM, "%s", status->message);
	} else {
		draw_line(A_BOLD, "%s",
			  *v->finding.text ?
				  v->finding.text :
				  "No thread waited for a GIL or ran for long: `sonde why PID` shows other waits.");
		draw_line(
			A_DIM,
			"sonde top%s  %.2f s, lost %llu, uses %.2f%% of one CPU in the targets and %.2f%% itself   q quit  p pause  "
			"s sort  ? help",
			s.paused ? "  PAUSED" : "", (double)(v->to - v->from) / 1e9, status->lost,
			status->targets_percent, status->own_percent);
		draw_line(
			A_DIM, "%s%s", status->message,
			v->sliced ?
				" waits are so frequent that only a part of the time is measured; the figures are estimates" :
				"");
		draw_gils(v, rows);
		draw_line(0, " ");
		draw_pairs(v, rows);
		draw_line(0, " ");
		if (status->sampling)
			draw_functions(v);
	}
	refresh();
}
