// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import Holdfast
    internal import HoldfastCommand
    internal import HoldfastSemantics

    /// What `holdfast get` exits with; a script tells by it what went wrong.
    enum GetStatus {
        /// The status of the response is 400 or above.
        static let http: Int32 = 22
        static let network: Int32 = 70
        static let resolve: Int32 = 71
        static let connect: Int32 = 72
        static let tls: Int32 = 73
        static let broken: Int32 = 74
        static let timeout: Int32 = 75
        static let redirects: Int32 = 76
        static let heldBack: Int32 = 77

        /// The status for a response.
        static func of(_ status: StatusCode) -> Int32 { status.rawValue >= 400 ? http : 0 }

        /// The status for an error.
        static func of(_ error: any Error) -> Int32 {
            if let failure = error as? CommandFailure { return failure.exitStatus }
            guard let error = error as? ServiceError else { return network }
            switch error.code {
            case .resolve: return resolve
            case .connect, .offline: return connect
            case .tls, .certificate: return tls
            case .connectionLost, .protocolError: return broken
            case .timeout, .deadlineExceeded: return timeout
            case .tooManyRedirects: return redirects
            case .throttled, .circuitOpen, .tooManyInFlight: return heldBack
            case .badRequest: return 64
            default: return network
            }
        }

        static let help = """
            Exit status: 0 every answer has a status below 400; 22 an answer has a status of 400 or above (its body is printed all \
            the same, unless --fail); 1 this machine refused something (a file cannot be written); 64 a wrong command line; 130 \
            interrupted. No answer, or a broken one: 71 the host has no address, 72 no connection, 73 TLS or certificate refused, \
            74 the connection broke or spoke no HTTP, 75 --timeout or --deadline passed, 76 too many redirects, 77 held back since \
            the server asked for it, 70 anything else. Of several URLs all are fetched; the first failure gives the status.
            """
    }
#endif
