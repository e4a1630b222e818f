// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if XML
    internal import HoldfastServices
    public import XMLCoder

    /// Sets up what writes and reads XML; for endpoints and services that adopt it, the service first.
    public protocol XMLConfiguring {
        /// Sets up what encodes XML input. Does nothing by default.
        func configure(_ encoder: XMLEncoder) throws
        /// Sets up what decodes XML. Does nothing by default.
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
    /// Sets up what writes and reads XML; needs the package trait `XML`.
    @available(
        *,
        unavailable,
        message: "Enable the package trait 'XML': .package(…, traits: [\"XML\"]), or swift build --traits XML"
    )
    public protocol XMLConfiguring {}
#endif
