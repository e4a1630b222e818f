// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// Whole pages of zeroed memory straight from the system, given back when their owner ends.
///
/// Tables that are rebuilt as they grow would leave holes of ever other sizes in the heap; pages leave none, and those
/// nobody wrote to take no memory.
struct MappedPages: ~Copyable {
    /// The first byte; nil only when there are no pages.
    let base: UnsafeMutableRawPointer?
    /// The bytes of all pages together.
    let bytes: Int

    /// The bytes of one page.
    static let pageSize = max(4_096, Int(getpagesize()))

    /// No pages.
    init() {
        base = nil
        bytes = 0
    }

    /// The fewest pages that hold `bytes` bytes; nil when the system does not give them.
    init?(bytes: Int) {
        guard bytes > 0, let whole = MappedPages.wholePages(bytes) else { return nil }
        #if canImport(Darwin)
            let flags = MAP_PRIVATE | MAP_ANON
        #else
            let flags = MAP_PRIVATE | MAP_ANONYMOUS
        #endif
        guard let address = mmap(nil, whole, PROT_READ | PROT_WRITE, flags, -1, 0),
            // The address that says "failed", whose name is a cast and not imported everywhere.
            UInt(bitPattern: address) != UInt.max
        else { return nil }
        base = address
        self.bytes = whole
    }

    deinit {
        if let base { munmap(base, bytes) }
    }

    /// `bytes` rounded up to whole pages; nil where there is no such number.
    static func wholePages(_ bytes: Int) -> Int? {
        let (padded, overflow) = bytes.addingReportingOverflow(pageSize - 1)
        return overflow ? nil : padded / pageSize * pageSize
    }
}
