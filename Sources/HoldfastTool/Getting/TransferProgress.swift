// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Holdfast
    internal import HoldfastCommand
    internal import Synchronization

    /// How far a transfer is, as a line on a terminal with size and rate.
    final class TransferProgress: Sendable {
        private let line: ProgressLine
        private let length: Int?
        private let clock: any HoldfastClock
        private let start: MonotonicInstant
        private let bytes = Mutex(0)

        init(_ console: Console, length: Int?, clock: any HoldfastClock) {
            line = ProgressLine(on: console)
            self.length = length
            self.clock = clock
            start = clock.now
        }

        func add(_ count: Int) {
            let bytes = bytes.withLock { bytes in
                bytes += count
                return bytes
            }
            let fraction = length.map { $0 > 0 ? Double(bytes) / Double($0) : 1 }
            line.draw(fraction, Self.text(bytes, of: length, in: start.duration(to: clock.now)))
        }

        func end() {
            line.clear()
        }

        /// `1.2 MB of 5 MB, 3.1 MB/s`.
        static func text(_ bytes: Int, of length: Int?, in time: Duration) -> String {
            let seconds = max(0.001, time / .seconds(1))
            let rate = ByteCount(Int(min(Double(bytes) / seconds, 0x1p52)))
            return "\(ByteCount(bytes))" + (length.map { " of \(ByteCount($0))" } ?? "") + ", \(rate)/s"
        }
    }
#endif
