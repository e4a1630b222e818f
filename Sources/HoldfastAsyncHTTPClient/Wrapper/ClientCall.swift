// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import Logging
    internal import NIOHTTP1
    internal import NIOSSL
    private import Synchronization

    /// What a call of ``HoldfastHTTPClient`` has in addition to a URLRequest, passed around the pipeline to the transport.
    final class ClientCall: Sendable {
        let tlsConfiguration: TLSConfiguration?
        let localAddress: String?
        let logger: Logger?
        private let lastVersion = Mutex<HTTPVersion?>(nil)

        init(_ request: HTTPClientRequest, logger: Logger?) {
            tlsConfiguration = request.tlsConfiguration
            localAddress = request.localAddress
            self.logger = logger
        }

        /// The HTTP version of the last response that a transport received for this call.
        var version: HTTPVersion? { lastVersion.withLock { $0 } }

        func note(_ version: HTTPVersion) {
            lastVersion.withLock { $0 = version }
        }
    }
#endif
