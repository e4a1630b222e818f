// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import NIOSSL
    private import Synchronization

    /// Where the certificate of a proxy lies, and its key.
    public struct ProxyCertificate: Sendable, Hashable {
        /// A file in PEM: the certificate, and those that lead to a root behind it.
        public var certificatePath: String
        /// A file in PEM: the private key.
        public var keyPath: String

        /// The certificate and the key in these files.
        public init(certificatePath: String, keyPath: String) {
            self.certificatePath = certificatePath
            self.keyPath = keyPath
        }
    }

    /// How a server speaks TLS; its certificate can be read anew while it serves. TLS 1.2 or later, HTTP/1.1 alone.
    package final class ServerTLS: Sendable {
        private let files: ProxyCertificate
        private let state: Mutex<NIOSSLContext>

        /// - Throws: ``ProxyConfigurationError`` where the files are no certificate with its key.
        init(_ files: ProxyCertificate) throws(ProxyConfigurationError) {
            self.files = files
            state = Mutex(try ServerTLS.context(files))
        }

        /// What new connections go by.
        var context: NIOSSLContext { state.withLock { $0 } }

        /// Reads the files anew; where they are wrong, nothing changes.
        func reload() throws(ProxyConfigurationError) {
            let context = try ServerTLS.context(files)
            state.withLock { $0 = context }
        }

        private static func context(_ files: ProxyCertificate) throws(ProxyConfigurationError) -> NIOSSLContext {
            do {
                let chain = try NIOSSLCertificate.fromPEMFile(files.certificatePath)
                guard !chain.isEmpty else { throw ProxyConfigurationError("it holds no certificate") }
                let key = try NIOSSLPrivateKey(file: files.keyPath, format: .pem)
                var configuration = TLSConfiguration.makeServerConfiguration(
                    certificateChain: chain.map { .certificate($0) },
                    privateKey: .privateKey(key)
                )
                configuration.minimumTLSVersion = .tlsv12
                configuration.applicationProtocols = ["http/1.1"]
                return try NIOSSLContext(configuration: configuration)
            } catch {
                throw ProxyConfigurationError(
                    "\(files.certificatePath) and \(files.keyPath) are no certificate in PEM with its key: \(error)"
                )
            }
        }
    }
#endif
