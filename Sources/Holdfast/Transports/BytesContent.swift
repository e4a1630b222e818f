// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

package import HoldfastStorage
private import Synchronization

/// Bytes in memory, handed out once.
package final class BytesContent: ByteSource {
    private let rest: Mutex<ByteChunk?>

    /// A source of one chunk; of none where there are no bytes.
    package init(_ bytes: ByteChunk) {
        rest = Mutex(bytes.isEmpty ? nil : bytes)
    }

    package func next() async throws -> ByteChunk? {
        rest.withLock { rest in
            defer { rest = nil }
            return rest
        }
    }

    package func cancel() {
        rest.withLock { $0 = nil }
    }
}
