# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The library inside the target: libc and nothing else, so that it can be loaded into anything, also where glibc is
# older (libc.h).
SHIM_SRCS := $(wildcard cupti-shim/*.c)
SHIM      := $(B)/libsonde-cupti.so
SHIM_OBJS := $(SHIM_SRCS:%.c=$(B)/shim/%.o)

$(B)/shim/%.o: %.c $(B)/gen/config
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=gnu11 $(WARN) -O2 -g -fPIC -fvisibility=hidden -fno-omit-frame-pointer -Ibpf $(CPPFLAGS) \
		-MMD -MP -c $< -o $@
# It stays once it is loaded: a thread runs in it, and CUPTI and libc know functions of it
$(SHIM): $(SHIM_OBJS)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) -shared -Wl,-soname,libsonde-cupti.so -Wl,-z,nodelete,-z,defs $(LDFLAGS) $^ -o $@

all workloads: $(SHIM)
-include $(SHIM_OBJS:.o=.d)
