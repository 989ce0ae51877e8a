/* SPDX-License-Identifier: Apache-2.0 */
/*
 * needs the headers of CUPTI 13.2
 *
 * A libcupti.so.13 of VERSION that says on stdout how it was subscribed to and for how many calls.
 */
#include <cupti.h>
#include <stdio.h>

#ifndef VERSION
#define VERSION 130202
#endif

CUptiResult cuptiGetVersion(uint32_t *version)
{
	*version = VERSION;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *s, CUpti_CallbackFunc f, void *user)
{
	(void)user;
	*s = (CUpti_SubscriberHandle)f;
	printf("alone\n");
	return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *s, CUpti_CallbackFunc f, void *user,
			      CUpti_SubscriberParams *params)
{
	(void)user;
	*s = (CUpti_SubscriberHandle)f;
	if (params->structSize != CUpti_SubscriberParams_STRUCT_SIZE)
		return CUPTI_ERROR_INVALID_PARAMETER;
	printf("%s %s\n", params->subscriberName,
	       params->allowMultipleSubscribers ? "beside others" : "alone");
	return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle s, CUpti_CallbackDomain domain,
				CUpti_CallbackId id)
{
	if (s && on)
		printf("%d %u\n", (int)domain, id);
	return CUPTI_SUCCESS;
}
