// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    import HoldfastAsyncHTTPClient

    /// The client of this name from AsyncHTTPClient; nil where there is none.
    func makeAsyncHTTPClient(named name: String) -> TransferClient? {
        guard name == "async-http-client" else { return nil }
        let transport = AsyncHTTPClientTransport()
        return TransferClient(transport: transport) {
            try? await transport.shutdown()
        }
    }
#endif
