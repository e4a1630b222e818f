// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Observability
    public import Holdfast
    public import Logging
    public import Metrics
    public import Tracing
#endif
