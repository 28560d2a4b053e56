// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Stands for libcudnn: each function returns 0, or 5000 (CUDNN_STATUS_EXECUTION_FAILED) for the handle 0xbad. */
#include <stdint.h>
#include <stdlib.h>

#define RETURNS(function)                                  \
	int function(void *handle)                         \
	{                                                  \
		return handle == (void *)0xbad ? 5000 : 0; \
	}

RETURNS(cudnnConvolutionForward)
RETURNS(cudnnConvolutionBiasActivationForward)
RETURNS(cudnnConvolutionBackwardData)
RETURNS(cudnnConvolutionBackwardFilter)
RETURNS(cudnnConvolutionBackwardBias)
RETURNS(cudnnSoftmaxForward)
RETURNS(cudnnAddTensor)
RETURNS(cudnnGetConvolutionForwardWorkspaceSize)
RETURNS(cudnnSetTensor4dDescriptor)
RETURNS(cudnnSetTensor4dDescriptorEx)
RETURNS(cudnnSetTensorNdDescriptor)
RETURNS(cudnnSetTensorNdDescriptorEx)
RETURNS(cudnnSetFilter4dDescriptor)
RETURNS(cudnnSetFilterNdDescriptor)
RETURNS(cudnnBackendSetAttribute)
RETURNS(cudnnBackendGetAttribute)
RETURNS(cudnnBackendFinalize)
RETURNS(cudnnBackendExecute)

static int create(void **out)
{
	*out = malloc(8);
	return 0;
}

int cudnnCreateTensorDescriptor(void **out)
{
	return create(out);
}

int cudnnCreateFilterDescriptor(void **out)
{
	return create(out);
}

int cudnnBackendCreateDescriptor(int type, void **out)
{
	return create(out);
}

int cudnnBackendDestroyDescriptor(void *descriptor)
{
	free(descriptor);
	return 0;
}
