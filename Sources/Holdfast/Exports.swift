// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

// One import is enough for a user: requests and responses use the types of HoldfastSemantics, caches those of HoldfastStorage.
@_exported public import HoldfastSemantics
@_exported public import HoldfastStorage
