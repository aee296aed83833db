/* ---- what else the program does */

static void learn_function(const void *handle, const void *from, const char *name, bool library) {
  const Pair *image = find(&images, from);
  const uint32_t number = kernel_of(name, image != NULL ? image->value : 0, true);
  if (number == 0 || handle == NULL) return;
  kernels[number].owner = (void *)(uintptr_t)from;
  kernels[number].library = library;
  put(&handles, handle, number, from);
}

static void after_call(CUpti_CallbackId id, const void *call, CUcontext context) {
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoad: {
      const cuModuleLoad_params *q = call;
      put(&images, *q->module, keep_image(NULL, q->fname), context);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData:
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx:
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary: {
      const cuModuleLoadData_params *q = call; /* all three begin like this */
      put(&images, *q->module, keep_image(q->image, NULL), context);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData: {
      const cuLibraryLoadData_params *q = call;
      put(&images, *q->library, keep_image(q->code, NULL), NULL);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLinkAddData_v2: {
      const cuLinkAddData_v2_params *q = call;
      if (q->type == CU_JIT_INPUT_PTX) put(&linked, q->state, keep_image(q->data, NULL), NULL);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLinkComplete: {
      const cuLinkComplete_params *q = call;
      const Pair *text = find(&linked, q->state);
      if (text != NULL) put(&linked, *q->cubinOut, text->value, q->state);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadFromFile: {
      const cuLibraryLoadFromFile_params *q = call;
      put(&images, *q->library, keep_image(NULL, q->fileName), NULL);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLibraryGetModule: {
      const cuLibraryGetModule_params *q = call;
      const Pair *image = find(&images, q->library);
      if (image != NULL) put(&images, *q->pMod, image->value, q->library);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuModuleGetFunction: {
      const cuModuleGetFunction_params *q = call;
      learn_function(*q->hfunc, q->hmod, q->name, false);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLibraryGetKernel: {
      const cuLibraryGetKernel_params *q = call;
      learn_function(*q->pKernel, q->library, q->name, true);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuKernelGetFunction: {
      const cuKernelGetFunction_params *q = call;
      const Pair *kernel = find(&handles, q->kernel);
      if (kernel != NULL) put(&handles, *q->pFunc, kernel->value, kernel->owner);
      break;
    }
    default: break;
  }
}

/* What a probed kernel is loaded beside may not go meanwhile. */
static void lose(const void *module) {
  const uint64_t until = now_ns() + ENDING_MS * 1000000ull;
  while (loads_in(module) && now_ns() < until) {
    pthread_mutex_unlock(&lock);
    usleep(200);
    pthread_mutex_lock(&lock);
  }
  forget(module);
}

static void before_call(CUpti_CallbackId id, const void *call) {
  if (id == CUPTI_DRIVER_TRACE_CBID_cuModuleUnload)
    lose(((const cuModuleUnload_params *)call)->hmod);
  if (id == CUPTI_DRIVER_TRACE_CBID_cuLibraryUnload)
    lose(((const cuLibraryUnload_params *)call)->library);
  if (id == CUPTI_DRIVER_TRACE_CBID_cuLinkDestroy) {
    const void *state = ((const cuLinkDestroy_params *)call)->state;
    for (size_t i = 0; i < linked.size; i++)
      if (linked.pairs[i].key == state || linked.pairs[i].owner == state) linked.pairs[i].value = 0;
  }
}

static bool follow_all(void);

static bool flies_in(CUcontext context) {
  if (releasing > 0 || loads_in(context)) return true;
  for (uint32_t i = 0; i < build_count; i++)
    if (builds[i]->instance != NULL && builds[i]->instance->context == context &&
        in_use(builds[i]->instance))
      return true;
  return false;
}

/* Takes all that lies in a context from its builds, at once: the worker is to release none of it. */
static Instance *take_instances(CUcontext context) {
  Instance *taken_out = NULL;
  for (uint32_t i = 0; i < build_count; i++) {
    Instance *instance = builds[i]->instance;
    if (builds[i]->context != context) continue;
    builds[i]->dropped = true; /* another may not write into the file of one */
    builds[i]->instance = NULL;
    if (instance == NULL) continue;
    instance->next = taken_out;
    taken_out = instance;
  }
  return taken_out;
}

/* What lies in a context goes with it, once the records under way are handed over. */
static void drop_context(CUcontext context) {
  const uint64_t until = now_ns() + ENDING_MS * 1000000ull;
  while (flies_in(context) && now_ns() < until) {
    (void)follow_all();
    pthread_mutex_unlock(&lock);
    if (timed && !dead) (void)cuptiActivityFlushAll(0);
    usleep(500);
    pthread_mutex_lock(&lock);
    take_records();
  }
  Instance *all = take_instances(context);
  pthread_mutex_unlock(&lock);
  while (all != NULL) {
    Instance *one = all;
    all = one->next;
    release(one);
  }
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; i < context_count; i++)
    if (contexts[i].context == context) contexts[i] = contexts[--context_count];
  forget(context);
}

static bool is_launch(CUpti_CallbackId id) {
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz: return true;
    default: return false;
  }
}

static void CUPTIAPI on_call(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                             const void *data) {
  (void)unused;
  const bool leaving = domain == CUPTI_CB_DOMAIN_DRIVER_API && is_launch(id) && taken != NULL;
  if (inside || (dead && !leaving && (ended || domain != CUPTI_CB_DOMAIN_RESOURCE))) return;
  inside = 1;
  int cancelling = 0;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
    const CUpti_ResourceData *resource = data;
    pthread_mutex_lock(&lock);
    if (id == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) drop_context(resource->context);
    pthread_mutex_unlock(&lock);
  } else {
    const CUpti_CallbackData *call = data;
    const bool enter = call->callbackSite == CUPTI_API_ENTER;
    if (is_launch(id)) {
      if (enter) enter_launch(call, id);
      else leave_launch(call, id);
    } else {
      pthread_mutex_lock(&lock);
      if (enter) before_call(id, call->functionParams);
      else if (*(const CUresult *)call->functionReturnValue == CUDA_SUCCESS) {
        if (call->context != NULL) (void)device_of(call->context);
        after_call(id, call->functionParams, call->context);
      }
      pthread_mutex_unlock(&lock);
    }
  }
  (void)pthread_setcancelstate(cancelling, NULL);
  inside = 0;
}
