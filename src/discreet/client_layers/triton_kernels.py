"""Triton's kernels of a convolution whose weights differ by client, and of its gradients.

Images are channels last. Sums are in float32, in an order that the shapes of one client fix: no atomics and no choice
by measurement, so a run has the same bits each time, and a client's bits don't depend on who shares its block.
"""

import triton
import triton.language as tl


@triton.jit
def sum_over_taps(
    images,
    weights,
    bias,
    out,
    blocks_m,  # blocks of rows and of outputs of one client
    blocks_n,
    rows,  # outputs of one client: images × height × width
    out_high,
    out_wide,
    high,  # of an image
    wide,
    channels,  # of an image, all groups together
    inner,  # channels of a group
    outer,  # outputs of a group
    groups,
    first_high,  # the pixel of the first tap for output (0, 0)
    first_wide,
    gap_high,  # pixels between two taps; negative in an input gradient
    gap_wide,
    tap_high,  # the kernel's first tap that is used, and the step to the next
    tap_wide,
    tap_step_high,
    tap_step_wide,
    kernel_high,
    kernel_wide,
    whole_high,  # the size of the image that is written, and which of its pixels
    whole_wide,
    pixel_high,
    pixel_wide,
    pixel_step_high,
    pixel_step_wide,
    STEP_HIGH: tl.constexpr,  # pixels between two outputs
    STEP_WIDE: tl.constexpr,
    TAPS_HIGH: tl.constexpr,
    TAPS_WIDE: tl.constexpr,
    PACKED: tl.constexpr,  # channels of a group if taps and channels are one axis, else 0
    HAS_BIAS: tl.constexpr,
    IN_BF16: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """out[g, b, i, j, n] = bias[g, n] + Σ over taps and channels c of images[g, b, …, c] · weights[g, n, tap, c]."""
    program = tl.program_id(0)
    row = program // (blocks_m * blocks_n)
    block = program % (blocks_m * blocks_n)
    client = (row // groups).to(tl.int64)
    group = row % groups
    m = (block // blocks_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = (block % blocks_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    image = m // (out_high * out_wide)
    i = (m // out_wide) % out_high
    j = m % out_wide
    per_client = rows // (out_high * out_wide)
    source = images + client * per_client * high * wide * channels + group * inner
    weight = weights + row.to(tl.int64) * outer * kernel_high * kernel_wide * inner
    weight_rows = n * kernel_high * kernel_wide * inner
    start = image * high * wide
    y = i * STEP_HIGH + first_high
    x = j * STEP_WIDE + first_wide
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    if PACKED > 0:
        for step in range((TAPS_HIGH * TAPS_WIDE * PACKED + BLOCK_K - 1) // BLOCK_K):
            k = step * BLOCK_K + tl.arange(0, BLOCK_K)
            tap = k // PACKED
            c = k % PACKED
            down = tap // TAPS_WIDE
            right = tap % TAPS_WIDE
            there_k = k < TAPS_HIGH * TAPS_WIDE * PACKED
            at_y = y[:, None] + (down * gap_high)[None, :]
            at_x = x[:, None] + (right * gap_wide)[None, :]
            inside = (m < rows)[:, None] & there_k[None, :]
            inside = inside & (at_y >= 0) & (at_y < high) & (at_x >= 0) & (at_x < wide)
            at = (start[:, None] + at_y * wide + at_x) * channels + c[None, :]
            a = tl.load(source + at, mask=inside, other=0.0)
            used = (tap_high + down * tap_step_high) * kernel_wide + tap_wide + right * tap_step_wide
            of_k = used * PACKED + c
            b = tl.load(
                weight + weight_rows[None, :] + of_k[:, None], mask=there_k[:, None] & (n < outer)[None, :], other=0.0
            )
            if IN_BF16:
                total = tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16), total)
            else:
                total = tl.dot(a, b, total, input_precision=PRECISION)
    else:
        blocks_k = (inner + BLOCK_K - 1) // BLOCK_K
        for step in range(TAPS_HIGH * TAPS_WIDE * blocks_k):
            tap = step // blocks_k
            c = (step % blocks_k) * BLOCK_K + tl.arange(0, BLOCK_K)
            down = tap // TAPS_WIDE
            right = tap % TAPS_WIDE
            at_y = y + down * gap_high
            at_x = x + right * gap_wide
            inside = (m < rows) & (at_y >= 0) & (at_y < high) & (at_x >= 0) & (at_x < wide)
            at = (start + at_y * wide + at_x) * channels
            there_k = c < inner
            a = tl.load(source + at[:, None] + c[None, :], mask=inside[:, None] & there_k[None, :], other=0.0)
            used = (tap_high + down * tap_step_high) * kernel_wide + tap_wide + right * tap_step_wide
            b = tl.load(
                weight + weight_rows[None, :] + (used * inner + c)[:, None],
                mask=there_k[:, None] & (n < outer)[None, :],
                other=0.0,
            )
            if IN_BF16:
                total = tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16), total)
            else:
                total = tl.dot(a, b, total, input_precision=PRECISION)
    if HAS_BIAS:
        total += tl.load(bias + row * outer + n, mask=n < outer, other=0.0)[None, :]
    whole = (image * whole_high + i * pixel_step_high + pixel_high) * whole_wide + j * pixel_step_wide + pixel_wide
    target = out + client * per_client * whole_high * whole_wide * groups * outer + group * outer
    written = target + (whole * groups * outer)[:, None] + n[None, :]
    tl.store(written, total, mask=(m < rows)[:, None] & (n < outer)[None, :])


@triton.jit
def sum_over_positions(
    images,
    gradients,
    parts,
    blocks_n,
    blocks_k,
    rows,  # positions of one client: images × height × width of the gradients
    out_high,
    out_wide,
    high,
    wide,
    channels,
    inner,
    outer,
    groups,
    splits,
    steps,  # of one split
    kernels,  # clients × groups
    first_high,
    first_wide,
    gap_high,
    gap_wide,
    STEP_HIGH: tl.constexpr,
    STEP_WIDE: tl.constexpr,
    TAPS_HIGH: tl.constexpr,
    TAPS_WIDE: tl.constexpr,
    PACKED: tl.constexpr,
    IN_BF16: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """parts[split, g, n, tap, c] = Σ over a split's positions of gradients[g, b, i, j, n] · images[g, b, …, c]."""
    program = tl.program_id(0)
    block = program % (blocks_n * blocks_k)
    split = (program // (blocks_n * blocks_k)) % splits
    row = program // (blocks_n * blocks_k * splits)
    client = (row // groups).to(tl.int64)
    group = row % groups
    n = (block // blocks_k) * BLOCK_N + tl.arange(0, BLOCK_N)
    at_k = block % blocks_k
    if PACKED > 0:
        k = at_k * BLOCK_K + tl.arange(0, BLOCK_K)
        tap = k // PACKED
        c = k % PACKED
        there_k = k < TAPS_HIGH * TAPS_WIDE * PACKED
    else:
        per_tap = (inner + BLOCK_K - 1) // BLOCK_K
        tap = at_k // per_tap
        c = (at_k % per_tap) * BLOCK_K + tl.arange(0, BLOCK_K)
        k = tap * inner + c
        there_k = c < inner
    down = (tap // TAPS_WIDE) * gap_high + first_high
    right = (tap % TAPS_WIDE) * gap_wide + first_wide
    per_client = rows // (out_high * out_wide)
    source = images + client * per_client * high * wide * channels + group * inner
    outputs = gradients + client * rows * groups * outer + group * outer
    total = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    for step in range(steps):
        m = (split * steps + step) * BLOCK_M + tl.arange(0, BLOCK_M)
        start = m // (out_high * out_wide) * high * wide
        y = (m // out_wide) % out_high * STEP_HIGH
        x = m % out_wide * STEP_WIDE
        if PACKED > 0:
            at_y = y[:, None] + down[None, :]
            at_x = x[:, None] + right[None, :]
            inside = (m < rows)[:, None] & there_k[None, :]
            inside = inside & (at_y >= 0) & (at_y < high) & (at_x >= 0) & (at_x < wide)
            at = (start[:, None] + at_y * wide + at_x) * channels + c[None, :]
        else:
            at_y = y + down
            at_x = x + right
            there = (m < rows) & (at_y >= 0) & (at_y < high) & (at_x >= 0) & (at_x < wide)
            inside = there[:, None] & there_k[None, :]
            at = ((start + at_y * wide + at_x) * channels)[:, None] + c[None, :]
        b = tl.load(source + at, mask=inside, other=0.0)
        a = tl.load(
            outputs + (m * groups * outer)[None, :] + n[:, None],
            mask=(m < rows)[None, :] & (n < outer)[:, None],
            other=0.0,
        )
        if IN_BF16:
            total = tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16), total)
        else:
            total = tl.dot(a, b, total, input_precision=PRECISION)
    taps = TAPS_HIGH * TAPS_WIDE
    target = parts + (split.to(tl.int64) * kernels + row) * outer * taps * inner
    written = target + (n * taps * inner)[:, None] + k[None, :]
    tl.store(written, total, mask=(n < outer)[:, None] & there_k[None, :])


@triton.jit
def add_parts(
    parts,
    out,
    blocks,
    size,  # values of all kernels together
    inner,
    splits,
    TAPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """out[row, c, tap] = Σ over splits of parts[split, row, tap, c], always in the same order."""
    program = tl.program_id(0)
    row = (program // blocks).to(tl.int64)
    k = (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    there = k < inner * TAPS
    source = parts + row * inner * TAPS + (k % TAPS) * inner + k // TAPS
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(splits):
        total += tl.load(source, mask=there, other=0.0)
        source += size
    tl.store(out + row * inner * TAPS + k, total, mask=there)
