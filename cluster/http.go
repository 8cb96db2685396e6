package cluster

import (
	"context"
	"log"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ringlimit/ringlimit/transport/rest"
)

// The bounds of HTTP on one connection. A body that comes slowly ends with
// ReadTimeout, an answer that nobody reads with WriteTimeout, which is longer than
// any call of transport/rest may take.
const (
	httpHeaderTimeout = 5 * time.Second
	httpReadTimeout   = 10 * time.Second
	httpWriteTimeout  = time.Minute
	httpIdleTimeout   = 2 * time.Minute
	maxHTTPHeader     = 16 << 10 // bytes
)

// httpServer serves callers that speak HTTP, and what monitors ask for.
func (n *Node) httpServer() *http.Server {
	var handler http.Handler = rest.New(rest.Options{
		Service: n.server, Policies: n.Policies(), Ready: n.ready.state,
		Metrics: promhttp.HandlerFor(n.metrics.registry, promhttp.HandlerOpts{}), Logger: n.log,
	})
	if n.cfg.Profiling {
		handler = profiled(handler)
	}
	return &http.Server{
		TLSConfig: n.secrets.httpConfig(), ErrorLog: log.New(httpLog{n.log}, "", 0), Handler: handler, ReadHeaderTimeout: httpHeaderTimeout, ReadTimeout: httpReadTimeout,
		WriteTimeout: httpWriteTimeout, IdleTimeout: httpIdleTimeout, MaxHeaderBytes: maxHTTPHeader,
	}
}

// httpLog takes what http.Server has to say. Handshakes that fail are everybody's to
// bring about, as often as they like.
type httpLog struct{ log *slog.Logger }

func (l httpLog) Write(p []byte) (int, error) {
	text, level := strings.TrimSpace(string(p)), slog.LevelWarn
	if strings.Contains(text, "TLS handshake error") {
		level = slog.LevelDebug
	}
	l.log.Log(context.Background(), level, text) // http.Server gives no context
	return len(p), nil
}

// profiled serves profiles of the process beside all else.
func profiled(rest http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		rest.ServeHTTP(w, r)
	})
}

// closeServers lets the calls under way finish, of both servers, for two seconds at most.
func (n *Node) closeServers(ctx context.Context, srv *http.Server) {
	ctx, done := context.WithTimeout(ctx, 2*time.Second)
	defer done()
	var wait sync.WaitGroup
	wait.Go(func() { _ = srv.Shutdown(ctx) }) // what is left then is cut off by Close
	n.server.Shutdown(ctx)
	wait.Wait()
}

// Ready says whether the node serves, and if not, why.
func (n *Node) Ready() (ready bool, why string) { return n.ready.state() }
