# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A double of NVML, made with the header of CUDA 13, and the comparison of sonde's declarations with the headers of three
# versions, if scripts/nvml.sh could get them
NVML      ?= build/nvml
FAKE_NVML := tests/fakes/nvml
NVML_CC   := -std=gnu11 -O2 -g -fPIC -Wall -Wno-deprecated-declarations -Ibpf/probes

define nvml_rules
$(B)/$(FAKE_NVML)/$(1)/%.o: $(FAKE_NVML)/%.c $(B)/gen/config
	@mkdir -p $$(@D)
	$$(call say,CC)$$(CC) $(NVML_CC) -I$(NVML)/$(1)/include -MMD -MP -c $$< -o $$@
NVML_DOUBLES += $(B)/$(FAKE_NVML)/$(1)/sizes.o $(B)/$(FAKE_NVML)/$(1)/signatures.o
endef
$(foreach v,11 12 13,$(if $(wildcard $(NVML)/$(v)/include/nvml.h),$(eval $(call nvml_rules,$(v)))))

$(B)/$(FAKE_NVML)/libnvidia-ml.so.1: $(B)/$(FAKE_NVML)/13/libnvidia-ml.o $(B)/$(FAKE_NVML)/13/script.o
	$(call say,LINK)$(CC) -shared -Wl,-soname,libnvidia-ml.so.1 $^ -o $@
NVML_DOUBLES += $(if $(wildcard $(NVML)/13/include/nvml.h),$(B)/$(FAKE_NVML)/libnvidia-ml.so.1)

workloads: $(NVML_DOUBLES)
