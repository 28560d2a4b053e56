# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Doubles of CUDA's libraries, once for each version whose headers scripts/cupti.sh could get, in build/tests/fakes/cuda/VERSION/
CUPTI     ?= build/cupti
FAKE_CUDA := tests/fakes/cuda

# VERSION
define fake_cuda_rules
$(B)/$(FAKE_CUDA)/$(1)/.flags: $(B)/gen/config
	@mkdir -p $$(@D)
	@touch $$@
$(B)/$(FAKE_CUDA)/$(1)/%.o: $(FAKE_CUDA)/%.c $(B)/$(FAKE_CUDA)/$(1)/.flags
	$$(call say,CC)$$(CC) -std=gnu11 -O2 -g -fPIC -Wall -Wno-packed-not-aligned -Wno-deprecated-declarations -I. -Ibpf \
		-I$(CUPTI)/$(1)/include -I$(CUDA)/$(1)/include -MMD -MP -c $$< -o $$@
$(B)/$(FAKE_CUDA)/$(1)/libcuda.so.1: $(addprefix $(B)/$(FAKE_CUDA)/$(1)/,libcuda.o device.o module.o context.o)
	$$(call say,LINK)$$(CC) -shared -Wl,-soname,libcuda.so.1 $$^ -lpthread -ldl -o $$@
$(B)/$(FAKE_CUDA)/$(1)/libcudart.so.$(1): $(B)/$(FAKE_CUDA)/$(1)/libcudart.o $(B)/$(FAKE_CUDA)/$(1)/libcuda.so.1
	$$(call say,LINK)$$(CC) -shared -Wl,-soname,libcudart.so.$(1) -Wl,-rpath,'$$$$ORIGIN' $$^ -o $$@
$(B)/$(FAKE_CUDA)/$(1)/libcupti.so.$(1): $(addprefix $(B)/$(FAKE_CUDA)/$(1)/,libcupti.o cupti_records.o layouts.o \
		libcuda.so.1)
	$$(call say,LINK)$$(CC) -shared -Wl,-soname,libcupti.so.$(1) -Wl,-rpath,'$$$$ORIGIN' $$^ -lpthread -o $$@
$(B)/$(FAKE_CUDA)/$(1)/fake_training: $(addprefix $(B)/$(FAKE_CUDA)/$(1)/,fake_training.o libcudart.so.$(1) libcuda.so.1)
	$$(call say,LINK)$$(CC) -Wl,-rpath,'$$$$ORIGIN' $$^ -lpthread -o $$@
$(B)/$(FAKE_CUDA)/$(1)/fake_ranks: $(addprefix $(B)/$(FAKE_CUDA)/$(1)/,fake_ranks.o libcudart.so.$(1) libcuda.so.1)
	$$(call say,LINK)$$(CC) -Wl,-rpath,'$$$$ORIGIN' $$^ -ldl -o $$@
CUDA_DOUBLES += $(addprefix $(B)/$(FAKE_CUDA)/$(1)/,libcuda.so.1 libcudart.so.$(1) libcupti.so.$(1) fake_training \
	fake_ranks)
endef
$(foreach v,12 13,$(if $(and $(wildcard $(CUPTI)/$(v)/include/cupti.h),$(wildcard $(CUDA)/$(v)/include/cuda.h)), \
	$(eval $(call fake_cuda_rules,$(v)))))

# Consumes what the shim hands over within the process, as a tool without eBPF would
$(B)/$(FAKE_CUDA)/consumer.so: $(FAKE_CUDA)/consumer.c $(B)/gen/config
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=gnu11 -O2 -g -fPIC -Wall -shared -I. -Ibpf -MMD -MP -MF $@.d $< -ldl -lpthread -o $@

workloads: $(CUDA_DOUBLES) $(B)/$(FAKE_CUDA)/consumer.so
