// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    #if canImport(FoundationNetworking)
        internal import Foundation
        internal import FoundationNetworking
    #else
        internal import Foundation
    #endif
    internal import Tracing

    /// Writes a trace's fields, such as `traceparent`, to a request.
    struct RequestInjector: Injector {
        func inject(_ value: String, forKey key: String, into carrier: inout URLRequest) {
            carrier.setValue(value, forHTTPHeaderField: key)
        }
    }
#endif
