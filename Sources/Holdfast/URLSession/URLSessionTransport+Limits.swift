// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension URLSessionTransport {
    /// What a transport may hold; each is a bound for one exchange.
    public struct Limits: Sendable, Hashable {
        /// The bytes of a response that may wait for their reader in memory; 8 MiB by default.
        public var bodyInMemory = 8 << 20
        /// The bytes of a response that may wait in a temporary file beyond those in memory; 1 GiB by default.
        ///
        /// A response that exceeds it ends with ``ServiceError`` `.bodyTooLarge`, unless it is downloaded into a file, for which there
        /// is no limit. 0: no file is ever made.
        public var bodyOnDisk = 1 << 30
        /// The bytes of a streamed request body that are collected in memory; longer ones go to a temporary file. 1 MiB by
        /// default.
        public var requestBodyInMemory = 1 << 20

        /// The defaults.
        public init() {}
    }
}
