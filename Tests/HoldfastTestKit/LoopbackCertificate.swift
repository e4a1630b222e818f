// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient || Proxy
    package import NIOSSL

    /// A certificate for 127.0.0.1 and localhost, signed by itself, and its key: for servers of these tests alone.
    ///
    /// Both are public, so nothing must ever trust them but a test. Valid from 2020 to the end of 2119.
    package enum LoopbackCertificate {
        package static func certificate() throws -> NIOSSLCertificate {
            try NIOSSLCertificate(bytes: Array(pem.utf8), format: .pem)
        }

        package static func key() throws -> NIOSSLPrivateKey {
            try NIOSSLPrivateKey(bytes: Array(keyPEM.utf8), format: .pem)
        }

        /// How a client trusts it.
        package static func trustingConfiguration() throws -> TLSConfiguration {
            var configuration = TLSConfiguration.makeClientConfiguration()
            configuration.trustRoots = .certificates([try certificate()])
            return configuration
        }

        /// How a server shows it.
        package static func servingConfiguration(protocols: [String] = []) throws -> TLSConfiguration {
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: [.certificate(try certificate())],
                privateKey: .privateKey(try key())
            )
            configuration.applicationProtocols = protocols
            return configuration
        }

        /// It and its key as files have them.
        package static let pem = """
            -----BEGIN CERTIFICATE-----
            MIIBaDCCAQ2gAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
            c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjExOTEyMzEyMzU5NTlaMBQxEjAQBgNVBAMM
            CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABD/3dvhkl/FTJ0ww
            Pt14th1LRyYyRVqZAW8lakyfJPW1utUGdiYwg29XBtrdKFgGan5bzBs/zTHvLIAG
            YhNmWMmjTjBMMA8GA1UdEwEB/wQFMAMBAf8wGgYDVR0RBBMwEYIJbG9jYWxob3N0
            hwR/AAABMB0GA1UdDgQWBBSK3Si8An+pqsegtSIUTyFSB3fMljAKBggqhkjOPQQD
            AgNJADBGAiEA2CmnHSBXizWLWkoVr/cleokHQ/xTdS0LM4QGBNkUyvQCIQD+ckyY
            KJcmCTWFOvxI812FwVOR46dBehsT9qdc4rOdjw==
            -----END CERTIFICATE-----
            """

        package static let keyPEM = """
            -----BEGIN PRIVATE KEY-----
            MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgDAO+1tI/Tmm5iUwa
            RbNOItmC8kINCkLBW/oVAGyq8cWhRANCAAQ/93b4ZJfxUydMMD7deLYdS0cmMkVa
            mQFvJWpMnyT1tbrVBnYmMINvVwba3ShYBmp+W8wbP80x7yyABmITZljJ
            -----END PRIVATE KEY-----
            """
    }
#endif
