// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "core/sonde.bpf.h"
#include "torture.h"

PLACED(torture_placed, "libtorture.so:p_*,_ZN7torture*", torture_placed)
{
	e->a = ARG1(ctx);
	e->b = ARG2(ctx);
}

SPAN(torture_span, "libtorture.so:s_*", torture_span)
{
	e->a = ARG1(ctx);
	e->b = ARG2(ctx);
}
