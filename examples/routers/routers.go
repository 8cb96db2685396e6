// Package routers shows httplimit under routers that match requests in ways of their own:
// chi, gin and echo. The packages beneath it are small enough to be copied. It is a module of
// its own, so that the client brings none of them along.
package routers
