// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Compares the bytes that a subject claims to have moved with those that the system counted.
public struct TransferTally: Sendable {
    private var moved = ProcessCounters.Transfer(read: 0, written: 0)
    private var gets = 0
    private var puts = 0
    private var isCounted = false

    /// Nothing was counted yet.
    public init() {}

    /// Adds what the system counted while so many values were read and written.
    public mutating func add(_ transfer: ProcessCounters.Transfer, gets: Int, puts: Int) {
        isCounted = true
        moved.read += transfer.read
        moved.written += transfer.written
        self.gets += gets
        self.puts += puts
    }

    /// What is wrong; nil where the bytes are there, or nothing was counted.
    ///
    /// A subject may answer a quarter of its gets from memory of its own (SQLite's default cache does), but not more. Every
    /// byte put must have been written.
    ///
    /// - Parameters:
    ///   - size: bytes of a value.
    ///   - readsByCalls: false for a subject that maps its file: then its reads are not judged.
    public func finding(name: String, size: Int, readsByCalls: Bool) -> String? {
        guard isCounted else { return nil }
        let (toRead, toWrite) = (gets * size, puts * size)
        if readsByCalls, moved.read < toRead / 4 * 3 {
            return "\(name) read \(moved.read) bytes by calls where \(toRead) were handed out: left out of the figures."
        }
        if moved.written < toWrite {
            return "\(name) wrote \(moved.written) bytes where \(toWrite) were put: left out of the figures."
        }
        return nil
    }
}
