// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import NIOSSL
    private import Synchronization

    /// The files with the certificate of a proxy, and its key.
    public struct ProxyCertificate: Sendable, Hashable {
        /// A PEM file: the certificate, followed by those that lead to a root.
        public var certificatePath: String
        /// A PEM file: the private key.
        public var keyPath: String

        /// The certificate and the key in these files.
        public init(certificatePath: String, keyPath: String) {
            self.certificatePath = certificatePath
            self.keyPath = keyPath
        }
    }

    /// The TLS settings of a server, whose certificate can be reloaded while it serves. TLS 1.2 or later.
    package final class ServerTLS: Sendable {
        private let files: ProxyCertificate
        /// Whether clients may select HTTP/2.
        private let offersHTTP2: Bool
        private let state: Mutex<NIOSSLContext>

        /// - Throws: ``ProxyConfigurationError`` if the files are not a certificate with its key.
        init(_ files: ProxyCertificate, offersHTTP2: Bool = true) throws(ProxyConfigurationError) {
            self.files = files
            self.offersHTTP2 = offersHTTP2
            state = Mutex(try ServerTLS.context(files, offersHTTP2: offersHTTP2))
        }

        /// The context for new connections.
        var context: NIOSSLContext { state.withLock { $0 } }

        /// Reloads the files; if they are wrong, nothing changes.
        func reload() throws(ProxyConfigurationError) {
            let context = try ServerTLS.context(files, offersHTTP2: offersHTTP2)
            state.withLock { $0 = context }
        }

        private static func context(
            _ files: ProxyCertificate,
            offersHTTP2: Bool
        ) throws(ProxyConfigurationError) -> NIOSSLContext {
            do {
                let chain = try NIOSSLCertificate.fromPEMFile(files.certificatePath)
                guard !chain.isEmpty else { throw ProxyConfigurationError("it contains no certificate") }
                let key = try NIOSSLPrivateKey(file: files.keyPath, format: .pem)
                var configuration = TLSConfiguration.makeServerConfiguration(
                    certificateChain: chain.map { .certificate($0) },
                    privateKey: .privateKey(key)
                )
                configuration.minimumTLSVersion = .tlsv12
                configuration.applicationProtocols = (offersHTTP2 ? ["h2"] : []) + ["http/1.1"]
                return try NIOSSLContext(configuration: configuration)
            } catch {
                throw ProxyConfigurationError(
                    "\(files.certificatePath) and \(files.keyPath) are not a PEM certificate with its key: \(error)"
                )
            }
        }
    }
#endif
