// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if XML
    internal import HoldfastServices
    public import XMLCoder

    /// Sets up the XML encoder and decoder; for endpoints and services that conform to it, the service first.
    public protocol XMLConfiguring {
        /// Sets up the encoder of XML input. Does nothing by default.
        func configure(_ encoder: XMLEncoder) throws
        /// Sets up the XML decoder. Does nothing by default.
        func configure(_ decoder: XMLDecoder) throws
    }

    extension XMLConfiguring {
        public func configure(_ encoder: XMLEncoder) throws {}
        public func configure(_ decoder: XMLDecoder) throws {}
    }

    extension EndpointCoding {
        func configure(_ encoder: XMLEncoder) throws {
            try (service as? any XMLConfiguring)?.configure(encoder)
            try (endpoint as? any XMLConfiguring)?.configure(encoder)
        }

        func configure(_ decoder: XMLDecoder) throws {
            try (service as? any XMLConfiguring)?.configure(decoder)
            try (endpoint as? any XMLConfiguring)?.configure(decoder)
        }
    }
#else
    /// Sets up the XML encoder and decoder; needs the package trait `XML`.
    @available(
        *,
        unavailable,
        message: "Enable the package trait 'XML': .package(…, traits: [\"XML\"]), or swift build --traits XML"
    )
    public protocol XMLConfiguring {}
#endif
