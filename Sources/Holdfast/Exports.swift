// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

// One import is enough for a user: requests and responses are made of the semantics' types, caches of the stores.
@_exported public import HoldfastSemantics
@_exported public import HoldfastStorage
