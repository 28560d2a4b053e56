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
# GPU="--minutes 5 --only program": arguments
gpu:
	@tests/gpu/run $(GPU)

.PHONY: shim gpu
