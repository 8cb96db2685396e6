package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy"
)

func overrideCommand() *cobra.Command {
	return parent("override", "Raise, lower or scale a policy for one tenant or key until a deadline",
		overrideSetCommand(), overrideListCommand(), overrideClearCommand())
}

// overrideOptions are the flags that say which override is meant.
type overrideOptions struct {
	addrs          nodes
	policy, tenant string
	keys           []string
	output         string
}

func (o *overrideOptions) register(cmd *cobra.Command) {
	addrFlag(cmd, &o.addrs)
	f := cmd.Flags()
	f.StringVar(&o.policy, "policy", "", "`ID` of the policy")
	f.StringVar(&o.tenant, "tenant", "", "short for --key tenant=T")
	f.StringArrayVar(&o.keys, "key", nil, "value of a name of the policy's scope, `NAME=VALUE`; may be given several times")
	outputFlag(cmd, &o.output, "text")
}

// override is the policy and key.
func (o *overrideOptions) override() (*policy.Override, error) {
	if o.policy == "" {
		return nil, usageError{errors.New("--policy ID is missing")}
	}
	texts := o.keys
	if o.tenant != "" {
		texts = append([]string{"tenant=" + o.tenant}, texts...)
	}
	key, err := pairs("--key", texts)
	if err != nil {
		return nil, err
	}
	if len(key) == 0 {
		return nil, usageError{errors.New("--key NAME=VALUE or --tenant T is missing: want whom it is for")}
	}
	out := &policy.Override{Policy: o.policy}
	for _, name := range slices.Sorted(maps.Keys(key)) {
		out.Key = append(out.Key, policy.Condition{Name: name, Value: key[name]})
	}
	return out, nil
}

func overrideSetCommand() *cobra.Command {
	var o overrideOptions
	var amount, burst uint64
	var scale, until string
	var length time.Duration
	cmd := &cobra.Command{
		Use:   "set --policy ID --key NAME=VALUE (--amount N | --burst N | --scale F) (--for D | --until T)",
		Short: "Give a policy another limit for one tenant or key",
		Long: "set gives a policy another limit for one tenant or key until a deadline: another amount or burst, or both scaled, as\n" +
			"in --scale 1.5 or --scale 1/3. It replaces the override that this key has.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := o.override()
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("amount") {
				v.Amount = &amount
			}
			if cmd.Flags().Changed("burst") {
				v.Burst = &burst
			}
			if v.Times, v.Per, err = parseScale(scale); err != nil {
				return err
			}
			if (v.Amount != nil || v.Burst != nil) == (scale != "") {
				return usageError{errors.New("want either --amount and --burst, or --scale")}
			}
			if v.Until, err = deadline(time.Now(), length, until); err != nil {
				return err
			}
			return changeOverride(cmd, &o, v, func(ctx context.Context, c pb.PoliciesClient, body []byte) (*pb.PutResponse, error) {
				return c.SetOverride(ctx, &pb.SetOverrideRequest{OverrideJson: body, Author: author()})
			})
		},
	}
	o.register(cmd)
	f := cmd.Flags()
	f.Uint64Var(&amount, "amount", 0, "`N` tokens per window")
	f.Uint64Var(&burst, "burst", 0, "capacity of `N` tokens; follows the amount where the policy's does")
	f.StringVar(&scale, "scale", "", "multiply amount and burst by `F`, a number or a fraction")
	f.DurationVar(&length, "for", 0, "ends after this time")
	f.StringVar(&until, "until", "", "ends at this `TIME`, as 2026-01-02T15:04:05Z")
	return cmd
}

// parseScale reads 2, 1.5 or 3/2 as a fraction; 0, 0 if text is empty.
func parseScale(text string) (times, per uint64, err error) {
	if text == "" {
		return 0, 0, nil
	}
	wrong := usageError{fmt.Errorf("--scale %q: want a number above 0 such as 1.5 or 3/2, of parts up to %d", text, bucket.MaxAmount)}
	if len(text) > 32 { // an exponent could ask for any amount of memory
		return 0, 0, wrong
	}
	for _, c := range text {
		if (c < '0' || c > '9') && c != '.' && c != '/' {
			return 0, 0, wrong
		}
	}
	f, ok := new(big.Rat).SetString(text)
	most := big.NewInt(bucket.MaxAmount)
	if !ok || f.Sign() <= 0 || f.Num().Cmp(most) > 0 || f.Denom().Cmp(most) > 0 {
		return 0, 0, wrong
	}
	return f.Num().Uint64(), f.Denom().Uint64(), nil
}

// deadline is when an override ends, in ns since 1970.
func deadline(now time.Time, length time.Duration, until string) (int64, error) {
	if (length == 0) == (until == "") {
		return 0, usageError{errors.New("want either --for DURATION or --until TIME")}
	}
	end := now.Add(length)
	if until != "" {
		var err error
		if end, err = time.Parse(time.RFC3339Nano, until); err != nil {
			return 0, usageError{fmt.Errorf("--until %q: want a time such as 2026-01-02T15:04:05Z", until)}
		}
	}
	if !end.After(now) {
		return 0, usageError{fmt.Errorf("the override would have ended at %s: want a time to come", end.Format(time.RFC3339))}
	}
	return end.UnixNano(), nil
}

func overrideClearCommand() *cobra.Command {
	var o overrideOptions
	cmd := &cobra.Command{
		Use:   "clear --policy ID --key NAME=VALUE",
		Short: "End an override before its deadline",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := o.override()
			if err != nil {
				return err
			}
			return changeOverride(cmd, &o, v, func(ctx context.Context, c pb.PoliciesClient, body []byte) (*pb.PutResponse, error) {
				return c.ClearOverride(ctx, &pb.ClearOverrideRequest{OverrideJson: body, Author: author()})
			})
		},
	}
	o.register(cmd)
	return cmd
}

func changeOverride(cmd *cobra.Command, o *overrideOptions, v *policy.Override, change func(context.Context, pb.PoliciesClient, []byte) (*pb.PutResponse, error)) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return changePolicies(cmd, o.addrs, o.output, func(ctx context.Context, c pb.PoliciesClient) (*pb.PutResponse, error) {
		return change(ctx, c, body)
	})
}

func overrideListCommand() *cobra.Command {
	var addrs nodes
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the overrides in force",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "table"); err != nil {
				return err
			}
			r, err := ask(cmd.Context(), addrs, reading, func(ctx context.Context, c *grpc.ClientConn) (*pb.ListOverridesResponse, error) {
				return pb.NewPoliciesClient(c).ListOverrides(ctx, &pb.ListOverridesRequest{})
			})
			if err != nil {
				return err
			}
			if output == "json" {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", r.GetOverridesJson())
				return err
			}
			return overrideTable(cmd.OutOrStdout(), r.GetOverridesJson())
		},
	}
	addrFlag(cmd, &addrs)
	outputFlag(cmd, &output, "table")
	return cmd
}

func overrideTable(out io.Writer, body []byte) error {
	var list []policy.Override
	if err := json.Unmarshal(body, &list); err != nil {
		return fmt.Errorf("the node's overrides cannot be read; is it of another version? %w", err)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POLICY\tKEY\tLIMIT\tUNTIL\tVERSION")
	for i := range list {
		o := &list[i]
		number := func(n *uint64) string {
			if n == nil {
				return ""
			}
			return strconv.FormatUint(*n, 10)
		}
		limit := fmt.Sprintf("amount %s  burst %s", cmp.Or(number(o.Amount), "-"), cmp.Or(number(o.Burst), "-"))
		if o.Per > 0 {
			limit = fmt.Sprintf("times %d/%d", o.Times, o.Per)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\n", o.Policy, o.Key, limit, time.Unix(0, o.Until).UTC().Format(time.RFC3339), o.Version)
	}
	return w.Flush()
}
