// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    import Holdfast
    import HoldfastStorage
    import Synchronization

    /// Content in the pieces it is given in.
    final class PieceSource: ByteSource {
        private let rest: Mutex<ArraySlice<String>>

        init(_ pieces: [String]) {
            rest = Mutex(pieces[...])
        }

        func next() async throws -> ByteChunk? {
            rest.withLock { rest in rest.popFirst().map { ByteChunk(copying: $0.utf8) } }
        }

        func cancel() {
            rest.withLock { $0 = [] }
        }
    }
#endif
