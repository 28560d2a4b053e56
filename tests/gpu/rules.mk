# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What tests/gpu/run needs, made with gcc and libc's headers alone: `make shim`
GPU_WORK_OBJS := $(patsubst %,$(B)/tests/gpu/%.o,work work_gpu work_odd truth driver)

$(B)/tests/gpu/%.o: tests/gpu/%.c $(B)/gen/config
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=gnu11 $(WARN) -O2 -g -MMD -MP -c $< -o $@
$(B)/tests/gpu/work: $(GPU_WORK_OBJS)
	$(call say,LINK)$(CC) $^ -ldl -lpthread -o $@

workloads: $(B)/tests/gpu/work
# Nothing is installed for it
shim: export SONDE_NO_DEPS := 1
shim: $(SHIM) $(B)/tests/fakes/cuda/consumer.so $(B)/tests/gpu/work $(B)/tests/gpu/reach.o
	@:
# To take build/sonde to a machine that lacks its libraries
gpu-libs: $(B)/sonde
	@rm -rf $(B)/lib && mkdir -p $(B)/lib
	@ldd $(B)/sonde | sed -n 's|.*=> \(/[^ ]*\) .*|\1|p' | grep -vE '/(libc|libm|libdl|libpthread|libgcc_s)\.so' | xargs cp -Lt $(B)/lib
# GPU="--minutes 5 --only program": arguments
gpu:
	@tests/gpu/run $(GPU)

.PHONY: shim gpu gpu-libs
