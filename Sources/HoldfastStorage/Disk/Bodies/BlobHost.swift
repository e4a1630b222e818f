// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What a body in a blob file needs of the store that it belongs to.
protocol BlobHost: AnyObject, Sendable {
    var files: any FileSystem { get }
    var seal: (any StoreSeal)? { get }
    var counters: DiskCounters { get }

    /// Counts a refusal of the device and says what it means to the caller.
    func failed(_ error: FileSystemError) -> StoreError

    /// Notes that the device did as it was told.
    func succeeded()

    /// Runs a read of an open body where it may block.
    func readBody<Value: Sendable>(
        _ work: @escaping @Sendable () throws(StoreError) -> Value
    ) async throws(StoreError) -> Value

    /// Deals with an entry whose body is damaged.
    ///
    /// - Returns: whether it was there as it was read.
    @discardableResult
    func dropDamaged(_ source: RecordSource) -> Bool
}

extension DiskEngine: BlobHost {}
