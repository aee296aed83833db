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
  if (known) ring[one->correlationId % RING].ns = one->end - one->start;
  if (!probed) {
    row->registers = one->registersPerThread;
    row->static_shared = (uint32_t)one->staticSharedMemory;
  }
  row->in_graphs += one->graphId != 0;
  add_time(row, one->end - one->start, probed);
}

/* A buffer that CUPTI has handed over. */
typedef struct Filled {
  struct Filled *next;
  uint8_t *buffer;
  size_t valid;
} Filled;

static _Atomic(Filled *) filled; /* the newest first */
static _Atomic uint64_t lost_records;

/* Takes no lock: whoever has that may wait in the driver for what CUPTI holds here. */
static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid) {
  (void)size;
  size_t lost = 0;
  if (!dead && cuptiActivityGetNumDroppedRecords(context, stream, &lost) == CUPTI_SUCCESS)
    lost_records += lost;
  Filled *one = dead || valid == 0 ? NULL : malloc(sizeof *one);
  if (one == NULL) {
    free(buffer);
    return;
  }
  *one = (Filled){filled, buffer, valid};
  while (!atomic_compare_exchange_weak(&filled, &one->next, one)) continue;
}

/* Takes the records that have come. */
static void take_records(void) {
  Filled *all = atomic_exchange(&filled, NULL), *oldest = NULL;
  while (all != NULL) {
    Filled *next = all->next;
    all->next = oldest, oldest = all, all = next;
  }
  while (oldest != NULL) {
    Filled *one = oldest;
    CUpti_Activity *record = NULL;
    while (cuptiActivityGetNextRecord(one->buffer, one->valid, &record) == CUPTI_SUCCESS)
      if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        take_record((const CUpti_ActivityKernel9 *)(const void *)record);
    oldest = one->next;
    free(one->buffer), free(one);
  }
  head->lost_records = lost_records;
}
