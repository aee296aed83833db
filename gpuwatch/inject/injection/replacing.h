/* ---- replacing a launch */

/* Which slot and build this launch goes with; NULL leaves it as it is. */
static Slot *choose(uint32_t number, uint64_t index, const Launch *launch, CUcontext context,
                    uint32_t device, Build **build) {
  const Kernel *kernel = &kernels[number];
  if (index < kernel->first || index > kernel->last) return NULL;
  if (plain_every > 0 && index % (plain_every + 1) == plain_every) return NULL;
  if (interval_ns > 0 && now_ns() - last_probed_ns < interval_ns) return NULL;
  Slot *slot = take_slot(number, device, launch, context, build);
  if (slot == NULL) return NULL;
  slot->number = index;
  last_probed_ns = now_ns();
  return slot;
}

/* Without the lock: a copy waits where the stream has no room for it. */
static bool replace(const Build *build, Slot *slot, const Launch *launch) {
  if (give_parameters(build, slot, launch) && fill_variables(build, slot, launch->stream)) {
    *launch->function = build->instance->function;
    return true;
  }
  *launch->parameters = slot->own_parameters;
  if (launch->extra != NULL) *launch->extra = slot->own_extra;
  return false;
}

static void note_plain(uint32_t correlation) {
  Noted *noted = &ring[correlation % RING];
  if (noted->correlation == correlation) noted->probed = false;
}

static void enter_launch(const CUpti_CallbackData *data, CUpti_CallbackId id) {
  const Launch launch = read_launch(id, data->functionParams);
  if (launch.function == NULL || *launch.function == NULL) return;
  pthread_mutex_lock(&lock);
  const uint32_t number = kernel_behind(*launch.function);
  const uint32_t device = device_of(data->context);
  Noted *noted = &ring[data->correlationId % RING];
  *noted = (Noted){data->correlationId, number, false, 0};
  const bool watched = number != 0 && is_watched(number);
  const bool captured = (watched || !timed) && is_captured(launch.stream);
  Row *row = number != 0 && (watched || !timed) ? row_of(number, device, &launch.shape) : NULL;
  if (row != NULL && !timed && !captured) row->launches++, head->launches++;
  const uint64_t index = number != 0 ? kernels[number].seen++ : 0;
  if (number != 0 && kernels[number].stored == (int64_t)index) store_launch(number, &launch);
  if (row != NULL && watched) row->seen++;
  Build *build = NULL;
  Slot *slot = NULL;
  if (row != NULL && watched && !captured) {
    slot = choose(number, index, &launch, data->context, device, &build);
    if (slot == NULL) row->skipped++;
    if (slot != NULL) {
      slot->row = (uint32_t)(row - rows);
      slot->correlation = data->correlationId;
      *noted = (Noted){data->correlationId, number, true, 0}; /* the lock was let go of */
      taken = slot, taken_by = data->correlationId;
    }
  }
  pthread_mutex_unlock(&lock);
  if (slot == NULL || replace(build, slot, &launch)) return;
  pthread_mutex_lock(&lock);
  taken = NULL;
  note_plain(data->correlationId);
  row->skipped++;
  slot->state = FREE;
  refuse(build, "its parameters cannot be given", CUDA_ERROR_INVALID_VALUE);
  pthread_mutex_unlock(&lock);
}

static Build *build_of(const Slot *slot) {
  for (uint32_t i = 0; i < build_count; i++) {
    const Instance *instance = builds[i]->instance;
    if (instance != NULL && slot >= instance->slots && slot < instance->slots + SLOTS)
      return builds[i];
  }
  return NULL;
}

static void leave_launch(const CUpti_CallbackData *data, CUpti_CallbackId id) {
  Slot *slot = taken_by == data->correlationId ? taken : NULL;
  taken = NULL;
  if (slot == NULL) return;
  CUresult *status = data->functionReturnValue;
  const Launch launch = read_launch(id, data->functionParams);
  if (*status == CUDA_SUCCESS) {
    const CUresult recorded = cuEventRecord(slot->launched, launch.stream);
    pthread_mutex_lock(&lock);
    const Build *build = build_of(slot);
    slot->state = recorded == CUDA_SUCCESS ? LAUNCHED : READ; /* not free: the kernel may write */
    if (recorded != CUDA_SUCCESS && build != NULL)
      tell("lost %u %u", build->id, (uint32_t)(slot - build->instance->slots));
    if (!timed) rows[slot->row].probed++;
    wake();
    pthread_mutex_unlock(&lock);
    return;
  }
  const CUresult refused = *status;
  *status = launch_own(&launch, slot);
  pthread_mutex_lock(&lock);
  note_plain(data->correlationId);
  Build *build = build_of(slot);
  slot->state = FREE;
  if (build != NULL && *status == CUDA_SUCCESS) refuse(build, "it cannot be launched", refused);
  pthread_mutex_unlock(&lock);
}
