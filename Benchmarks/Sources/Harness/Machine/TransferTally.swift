// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Compares the bytes that a subject should have transferred with those that the system counted.
public struct TransferTally: Sendable {
    private var moved = ProcessCounters.Transfer(read: 0, written: 0)
    private var gets = 0
    private var puts = 0
    private var isCounted = false

    /// Creates an empty tally.
    public init() {}

    /// Adds what the system counted while this many values were read and written.
    public mutating func add(_ transfer: ProcessCounters.Transfer, gets: Int, puts: Int) {
        isCounted = true
        moved.read += transfer.read
        moved.written += transfer.written
        self.gets += gets
        self.puts += puts
    }

    /// What is wrong; nil if the bytes match or nothing was counted.
    ///
    /// A subject may answer a quarter of its gets from its own memory (SQLite's default cache does), but not more. Every byte
    /// that was put must have been written.
    ///
    /// - Parameters:
    ///   - size: The size of a value in bytes.
    ///   - readsByCalls: false for a subject that maps its file; its reads are then not checked.
    public func finding(name: String, size: Int, readsByCalls: Bool) -> String? {
        guard isCounted else { return nil }
        let (toRead, toWrite) = (gets * size, puts * size)
        if readsByCalls, moved.read < toRead / 4 * 3 {
            return "\(name) read only \(moved.read) bytes by calls, but returned \(toRead); its figures are left out."
        }
        if moved.written < toWrite {
            return "\(name) wrote only \(moved.written) bytes, but \(toWrite) were put; its figures are left out."
        }
        return nil
    }
}
