// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    /// The client of this name from AsyncHTTPClient; nil where there is none.
    func makeAsyncHTTPClient(named name: String) -> TransferClient? {
        nil
    }
#endif
