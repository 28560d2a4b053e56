/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The functions that dnn_calls.c calls, with the parameters that cudnn_ops.h, cudnn_cnn.h and cudnn_graph.h declare.
 * With -DVENDOR the program is compiled with NVIDIA's headers instead.
 */
#pragma once

#ifdef VENDOR
#include <cudnn.h>
#else
#include <stddef.h>
#include <stdint.h>

typedef void *cudnnTensorDescriptor_t, *cudnnFilterDescriptor_t, *cudnnBackendDescriptor_t, *cudnnHandle_t;
typedef const void *scalar;

int cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *out);
int cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *out);
int cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t t, int format, int type, int n, int c, int h, int w);
int cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t t, int type, int n, int c, int h, int w, int sn, int sc,
				 int sh, int sw);
int cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t t, int type, int n, const int *sizes, const int *strides);
int cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t t, int format, int type, int n, const int *sizes);
int cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t f, int type, int format, int k, int c, int h, int w);
int cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t f, int type, int format, int n, const int *sizes);
int cudnnConvolutionForward(cudnnHandle_t h, scalar alpha, void *x, scalar X, void *w, scalar W, void *convolution,
			    int algorithm, void *workspace, size_t bytes, scalar beta, void *y, void *Y);
int cudnnConvolutionBiasActivationForward(cudnnHandle_t h, scalar alpha, void *x, scalar X, void *w, scalar W,
					  void *convolution, int algorithm, void *workspace, size_t bytes,
					  scalar alpha2, void *z, scalar Z, void *bias, scalar Bias, void *activation,
					  void *y, void *Y);
int cudnnConvolutionBackwardData(cudnnHandle_t h, scalar alpha, void *w, scalar W, void *dy, scalar DY,
				 void *convolution, int algorithm, void *workspace, size_t bytes, scalar beta, void *dx,
				 void *DX);
int cudnnConvolutionBackwardFilter(cudnnHandle_t h, scalar alpha, void *x, scalar X, void *dy, scalar DY,
				   void *convolution, int algorithm, void *workspace, size_t bytes, scalar beta,
				   void *dw, void *DW);
int cudnnSoftmaxForward(cudnnHandle_t h, int algorithm, int mode, scalar alpha, void *x, scalar X, scalar beta, void *y,
			void *Y);
int cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t h, void *x, void *w, void *convolution, void *y,
					    int algorithm, size_t *bytes);
int cudnnBackendCreateDescriptor(int type, cudnnBackendDescriptor_t *out);
int cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d);
int cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, int attribute, int type, int64_t n, const void *elements);
int cudnnBackendGetAttribute(cudnnBackendDescriptor_t d, int attribute, int type, int64_t requested, int64_t *n,
			     void *elements);
int cudnnBackendFinalize(cudnnBackendDescriptor_t d);
int cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t variants);
#endif
