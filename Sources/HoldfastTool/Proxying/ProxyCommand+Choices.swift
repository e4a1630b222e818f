// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import Holdfast

    extension ProxyCommand {
        /// For whom the cache stores.
        enum Mode: String, ExpressibleByArgument, CaseIterable {
            case `private`, shared
        }

        /// What is written to standard output for each request.
        enum Log: String, ExpressibleByArgument, CaseIterable {
            case none, access, decisions
        }

        /// What the origin is told of the client.
        enum ClientAddress: String, ExpressibleByArgument, CaseIterable {
            case none, xForwardedFor = "x-forwarded-for", forwarded
        }

        /// The library's presets of retrying.
        enum Retry: String, ExpressibleByArgument, CaseIterable {
            case gateway, `default`, strict, patient, interactive, none

            /// A factory with budgets of its own.
            var factory: any RetrierFactory {
                switch self {
                case .gateway: .gateway
                case .default: .default
                case .strict: .strict
                case .patient: .patient
                case .interactive: .interactive
                case .none: .never
                }
            }
        }
    }
#endif
