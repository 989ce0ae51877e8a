/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI's subscriber and its callbacks. They run on the calling thread when a call begins and when
 * it ends. Calls made inside a callback are not reported.
 */
#include <string.h>
#include <cupti.h>
#include "devices.h"
#include "tools.h"

__thread int call_result;

#define SUBSCRIBER_KIND SIM_KIND('S', 'U', 'B', '1')
#define IDS		2048
#define DOMAINS		8
#define NAME_MOST	64

struct subscriber {
	CUpti_CallbackFunc callback;
	void *data;
	uint64_t wanted[DOMAINS][IDS / 64];
};

unsigned int tool_active; /* callbacks are wanted */
static struct subscriber *subscriber;
static char subscriber_name[NAME_MOST];
static uint32_t correlations;
static __thread bool inside;

/* ---- callbacks ---- */

static bool wanted(const struct subscriber *s, int domain, uint32_t id)
{
	return id < IDS && s->wanted[domain][id / 64] >> id % 64 & 1;
}

static void call_subscribers(struct tool_call *call, CUpti_ApiCallbackSite site)
{
	struct subscriber *s = __atomic_load_n(&subscriber, __ATOMIC_ACQUIRE);
	struct sim_ctx *ctx = ctx_current();
	int result = call_result;
	CUpti_CallbackData d = {
		.callbackSite = site,
		.functionName = call->name,
		.functionParams = call->params,
		.functionReturnValue = site == CUPTI_API_EXIT ? &result : NULL,
		.context = (CUcontext)ctx,
		.contextUid = ctx ? (uint32_t)ctx->id : 0,
		.correlationData = &call->data,
		.correlationId = call->correlation,
	};

	if (!s || !s->callback)
		return;
	inside = true;
	s->callback(s->data, call->domain, call->id, &d);
	inside = false;
	call_result = result;
}

void tool_begin(struct tool_call *call)
{
	struct subscriber *s = __atomic_load_n(&subscriber, __ATOMIC_ACQUIRE);

	if (inside || !s || !wanted(s, call->domain, call->id))
		return;
	call->correlation = __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED);
	call_subscribers(call, CUPTI_API_ENTER);
}

void tool_end(struct tool_call *call)
{
	if (call->correlation)
		call_subscribers(call, CUPTI_API_EXIT);
}

/* ---- subscribing ---- */

static CUptiResult subscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback,
			     void *data)
{
	struct subscriber *none = NULL, *s;

	if (!handle)
		return CUPTI_ERROR_INVALID_PARAMETER;
	s = sim_handle(SUBSCRIBER_KIND, sizeof(*s));
	if (!s)
		return CUPTI_ERROR_OUT_OF_MEMORY;
	s->callback = callback;
	s->data = data;
	if (!__atomic_compare_exchange_n(&subscriber, &none, s, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE)) {
		sim_handle_free(s);
		return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	}
	*handle = (CUpti_SubscriberHandle)s;
	return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback,
				   void *data)
{
	subscriber_name[0] = 0;
	return subscribe(handle, callback, data);
}

SIM_API CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback,
				      void *data, CUpti_SubscriberParams *params)
{
	CUptiResult result = subscribe(handle, callback, data);

	if (!params)
		return result;
	if (result == CUPTI_SUCCESS && params->subscriberName)
		strncpy(subscriber_name, params->subscriberName, NAME_MOST - 1);
	if (result && params->oldSubscriberName && params->oldSubscriberSize)
		strncpy(params->oldSubscriberName, subscriber_name, params->oldSubscriberSize);
	return result;
}

/* The subscriber's memory is not freed, because other threads may be in its callback. */
SIM_API CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
	struct subscriber *mine = (struct subscriber *)handle;

	if (!mine || !__atomic_compare_exchange_n(&subscriber, &mine, NULL, false, __ATOMIC_ACQ_REL,
						  __ATOMIC_ACQUIRE))
		return CUPTI_ERROR_INVALID_PARAMETER;
	__atomic_store_n(&tool_active, 0, __ATOMIC_RELEASE);
	return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiFinalize(void)
{
	__atomic_store_n(&tool_active, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&subscriber, NULL, __ATOMIC_RELEASE);
	return CUPTI_SUCCESS;
}

/* ---- enabling callbacks ---- */

static struct subscriber *subscriber_of(CUpti_SubscriberHandle handle)
{
	struct subscriber *s = __atomic_load_n(&subscriber, __ATOMIC_ACQUIRE);

	return s && s == (struct subscriber *)handle ? s : NULL;
}

static void want(struct subscriber *s, uint32_t on, unsigned int domain, uint32_t id)
{
	if (on)
		s->wanted[domain][id / 64] |= (uint64_t)1 << id % 64;
	else
		s->wanted[domain][id / 64] &= ~((uint64_t)1 << id % 64);
	if (on)
		__atomic_store_n(&tool_active, 1, __ATOMIC_RELEASE);
}

SIM_API CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle handle,
					CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
	struct subscriber *s = subscriber_of(handle);

	if (!s || (unsigned int)domain >= DOMAINS || id >= IDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	want(s, on, domain, id);
	return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiEnableDomain(uint32_t on, CUpti_SubscriberHandle handle,
				      CUpti_CallbackDomain domain)
{
	struct subscriber *s = subscriber_of(handle);

	if (!s || (unsigned int)domain >= DOMAINS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (uint32_t id = 0; id < IDS; id++)
		want(s, on, domain, id);
	return CUPTI_SUCCESS;
}

SIM_API CUptiResult cuptiEnableAllDomains(uint32_t on, CUpti_SubscriberHandle handle)
{
	CUptiResult result = CUPTI_SUCCESS;

	for (int domain = 1; domain < DOMAINS && !result; domain++)
		result = cuptiEnableDomain(on, handle, (CUpti_CallbackDomain)domain);
	return result;
}

SIM_API CUptiResult cuptiGetCallbackState(uint32_t *on, CUpti_SubscriberHandle handle,
					  CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
	struct subscriber *s = subscriber_of(handle);

	if (!s || !on || (unsigned int)domain >= DOMAINS || id >= IDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*on = wanted(s, domain, id);
	return CUPTI_SUCCESS;
}
