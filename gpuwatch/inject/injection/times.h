/* ---- times: CUPTI's records of kernels */

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most) {
  *size = 1 << 20;
  *most = 0;
  *buffer = aligned_alloc(8, *size);
}

static void add_time(Row *row, uint64_t ns, bool probed) {
  uint64_t times = 1;
  if (sampling && !probed) {
    spare_share += stands_for;
    times = (uint64_t)spare_share;
    spare_share -= (double)times;
  }
  const uint32_t brief = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
  if (probed) {
    row->probed++, row->probed_ns += ns;
    row->recent_probed[row->recents_probed++ % RECENT] = brief;
  } else {
    row->total_ns += ns * times;
    if (ns > row->max_ns) row->max_ns = ns;
    row->recent[row->recents++ % RECENT] = brief;
  }
  row->launches += times;
  head->launches += times;
  head->sampled += times - 1;
  head->records++;
}

static void take_record(const CUpti_ActivityKernel9 *one) {
  if (one->name == NULL || one->end < one->start) return;
  const Noted *noted = &ring[one->correlationId % RING];
  const bool known = noted->correlation == one->correlationId && noted->kernel != 0;
  const uint32_t kernel = known ? noted->kernel : kernel_of(one->name, 0, true);
  if (kernel == 0) return;
  const Shape shape = {
      {(uint32_t)one->gridX, (uint32_t)one->gridY, (uint32_t)one->gridZ},
      {(uint32_t)one->blockX, (uint32_t)one->blockY, (uint32_t)one->blockZ},
      (uint32_t)one->dynamicSharedMemory};
  Row *row = row_of(kernel, one->deviceId, &shape);
  if (row == NULL) return;
  const bool probed = known && noted->probed;
  ring[one->correlationId % RING].ns = known ? one->end - one->start : 0;
  if (!probed) {
    row->registers = one->registersPerThread;
    row->static_shared = (uint32_t)one->staticSharedMemory;
  }
  row->in_graphs += one->graphId != 0;
  add_time(row, one->end - one->start, probed);
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid) {
  (void)size;
  CUpti_Activity *record = NULL;
  pthread_mutex_lock(&lock);
  if (!dead)
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
      if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        take_record((const CUpti_ActivityKernel9 *)(const void *)record);
  size_t lost = 0;
  if (!dead && cuptiActivityGetNumDroppedRecords(context, stream, &lost) == CUPTI_SUCCESS)
    head->lost_records += lost;
  pthread_mutex_unlock(&lock);
  free(buffer);
}
