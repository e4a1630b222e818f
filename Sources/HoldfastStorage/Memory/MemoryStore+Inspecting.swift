// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Memory needs no checking and has no gaps: both operations only count.
extension MemoryStore: InspectableStore {
    public func verify(
        _ progress: @escaping @Sendable (VerificationProgress) -> Void
    ) async throws(StoreError) -> VerificationReport {
        let (report, bytes) = try held()
        progress(VerificationProgress(entries: report.entriesChecked, bytesRead: bytes, bytesTotal: bytes))
        return report
    }

    @discardableResult
    public func compact() async throws(StoreError) -> CompactionReport {
        let (_, bytes) = try held()
        return CompactionReport(bytesBefore: bytes, bytesAfter: bytes)
    }
}
