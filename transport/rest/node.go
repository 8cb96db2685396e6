package rest

import (
	"net/http"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/statusjson"
)

// clusterStatus answers GET /v1/cluster with what `rlnode status -o json` prints. A
// cluster that is not healthy is an answer, too.
func clusterStatus(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	r, err := c.h.options.Service.Status(c.r.Context(), &pb.StatusRequest{})
	if err != nil {
		return err
	}
	c.out = append(appendJSON(c.out[:0], statusjson.Of(r)), '\n')
	c.answer(http.StatusOK, typeJSON)
	return nil
}

// healthz answers that the process lives, as text for probes.
func healthz(c *call) error {
	c.out = append(c.out[:0], "ok\n"...)
	c.answer(http.StatusOK, typeText)
	return nil
}

// readyz answers whether the node serves, and if not, why.
func readyz(c *call) error {
	if ready, why := c.h.options.Ready(); !ready {
		c.out = append(append(append(c.out[:0], "not ready: "...), why...), '\n')
		c.answer(http.StatusServiceUnavailable, typeText)
		return nil
	}
	c.out = append(c.out[:0], "ready\n"...)
	c.answer(http.StatusOK, typeText)
	return nil
}

func metrics(c *call) error {
	c.h.options.Metrics.ServeHTTP(c.w, c.r)
	return nil
}
