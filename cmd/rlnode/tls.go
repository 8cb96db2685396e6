package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/cluster"
	"github.com/ringlimit/ringlimit/internal/certs"
)

func tlsCommand() *cobra.Command {
	return parent("tls", "Make certificates", tlsInitCommand())
}

type tlsInit struct {
	dir, domain string
	nodes       []string
	hosts       []string
	validFor    time.Duration
}

func tlsInitCommand() *cobra.Command {
	var o tlsInit
	cmd := &cobra.Command{
		Use:   "init --dir DIR [--node NAME]... [--hosts HOST,...]",
		Short: "Make authorities, certificates and a gossip key for a lab",
		Long: "init makes two authorities, one for nodes among themselves and one for callers, certificates by them for each --node,\n" +
			"for a client and for an operator, and a key of gossip. Run again with other names it adds nodes, by the authorities\n" +
			"that are in DIR; it never overwrites a file. The keys of the authorities lie in DIR unprotected: with them anybody makes\n" +
			"certificates, so keep them off the nodes, and for production take the authority that you have.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.dir == "" {
				return usageError{errors.New("--dir is empty: want the directory to make files in")}
			}
			if o.validFor < time.Hour {
				return usageError{fmt.Errorf("--valid-for %s: want an hour or more", o.validFor)}
			}
			for _, name := range o.nodes {
				if err := cluster.ValidateName(name); err != nil {
					return usageError{fmt.Errorf("--node: %w", err)}
				}
			}
			return o.run(cmd.OutOrStdout(), time.Now())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", "", "`DIR` for the files; made if it is missing")
	f.StringArrayVar(&o.nodes, "node", nil, "`NAME` of a node, as of its --name; may be given several times")
	f.StringSliceVar(&o.hosts, "hosts", nil, "host names and IP addresses that callers reach the nodes by, `HOST,...`, beside loopback and the nodes' names")
	f.StringVar(&o.domain, "trust-domain", certs.DefaultDomain, "`DOMAIN` of the names in certificates")
	f.DurationVar(&o.validFor, "valid-for", 365*24*time.Hour, "how long certificates are valid; authorities ten times as long")
	return cmd
}

// made is a file to be written.
type made struct {
	name string
	data []byte
}

// run makes all in memory, then writes it: nothing is written if anything is there already.
func (o *tlsInit) run(out io.Writer, now time.Time) error {
	peers, callers, files, err := o.authorities(now)
	if err != nil {
		return err
	}
	issue := func(name string, a *certs.Authority, l certs.Leaf) error {
		l.From, l.Until = now.Add(-5*time.Minute), now.Add(o.validFor) // clocks differ a little
		p, err := a.Issue(l)
		files = append(files, made{name + ".crt", p.Cert}, made{name + ".key", p.Key})
		return err
	}
	if len(files) > 0 { // new authorities: what goes with them is made once
		files = append(files, made{"gossip.keys", []byte(certs.NewKey() + "\n")})
		for _, who := range []string{"client", "operator"} {
			if err := issue(who, callers, certs.Leaf{Name: who, URI: "spiffe://" + o.domain + "/" + who + "/" + who, Client: true}); err != nil {
				return err
			}
		}
	}
	for _, node := range o.nodes {
		err := errors.Join(
			issue(filepath.Join(node, "peer"), peers, certs.Leaf{Name: node, URI: certs.NodeID(o.domain, node), Server: true, Client: true}),
			issue(filepath.Join(node, "server"), callers, certs.Leaf{
				Name: node, Hosts: append([]string{node, "localhost", "127.0.0.1", "::1"}, o.hosts...), Server: true,
			}),
		)
		if err != nil {
			return err
		}
	}
	if len(files) == 0 {
		return usageError{fmt.Errorf("--node names no node, and %s has authorities already: there is nothing to make", o.dir)}
	}
	if err := o.write(files); err != nil {
		return err
	}
	o.tell(out, files)
	return nil
}

// authorities reads those in the directory, or makes new ones, with the files to write.
func (o *tlsInit) authorities(now time.Time) (peers, callers *certs.Authority, files []made, err error) {
	take := func(name, title string) (*certs.Authority, error) {
		cert, err := os.ReadFile(filepath.Join(o.dir, name+".crt"))
		if errors.Is(err, fs.ErrNotExist) {
			a, err := certs.NewAuthority(title, now.Add(-5*time.Minute), now.Add(10*o.validFor))
			if err == nil {
				files = append(files, made{name + ".crt", a.Pair().Cert}, made{name + ".key", a.Pair().Key})
			}
			return a, err
		}
		if err != nil {
			return nil, err
		}
		key, err := os.ReadFile(filepath.Join(o.dir, name+".key"))
		if err != nil {
			return nil, fmt.Errorf("the authority's certificate is there without its key: %w", err)
		}
		a, err := certs.ReadAuthority(certs.Pair{Cert: cert, Key: key})
		if err != nil {
			return nil, fmt.Errorf("%s.crt and %s.key in %s: %w", name, name, o.dir, err)
		}
		return a, nil
	}
	if peers, err = take("peer-ca", "ringlimit lab: nodes"); err != nil {
		return nil, nil, nil, err
	}
	callers, err = take("caller-ca", "ringlimit lab: callers")
	return peers, callers, files, err
}

// write writes files that must not be there.
func (o *tlsInit) write(files []made) error {
	for _, f := range files {
		path := filepath.Join(o.dir, f.name)
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is there already, and nothing is overwritten: move it away, or give another --dir; nothing was made", path)
		}
	}
	for _, f := range files {
		path := filepath.Join(o.dir, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		mode := fs.FileMode(0o600)
		if filepath.Ext(path) == ".crt" {
			mode = 0o644
		}
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		_, err = file.Write(f.data)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// tell says what was made and how it is used.
func (o *tlsInit) tell(out io.Writer, files []made) {
	fmt.Fprintln(out, "made:")
	for _, f := range files {
		fmt.Fprintln(out, "  "+filepath.Join(o.dir, f.name))
	}
	at := func(name string) string { return filepath.Join(o.dir, name) }
	for _, node := range o.nodes {
		fmt.Fprintf(out, "\nnode %s:\n  rlnode serve --name %s \\\n    --tls-cert %s --tls-key %s --tls-client-ca %s \\\n    --peer-tls-cert %s --peer-tls-key %s --peer-tls-ca %s \\\n    --gossip-keys %s",
			node, node, at(node+"/server.crt"), at(node+"/server.key"), at("caller-ca.crt"),
			at(node+"/peer.crt"), at(node+"/peer.key"), at("peer-ca.crt"), at("gossip.keys"))
		if o.domain != certs.DefaultDomain {
			fmt.Fprintf(out, " --trust-domain %s", o.domain)
		}
		fmt.Fprintln(out, " …")
	}
	fmt.Fprintf(out, "\ncallers and operators:\n  rlnode status --ca-file %s --client-cert %s --client-key %s …\n", at("caller-ca.crt"), at("operator.crt"), at("operator.key"))
	fmt.Fprintf(out, "\nKeep %s and %s off the nodes.\n", at("peer-ca.key"), at("caller-ca.key"))
}
