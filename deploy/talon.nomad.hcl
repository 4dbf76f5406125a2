# `nomad job run talon.nomad.hcl`. The client's docker driver must allow the capabilities:
#   plugin "docker" { config { allow_caps = ["sys_admin", "setuid", "setgid", "setpcap", "chown", "kill"] } }
job "talon" {
  type = "service"

  group "talon" {
    count = 1

    restart {
      attempts = 5
      interval = "5m"
      delay    = "1s"
      mode     = "fail"
    }

    # For the gateway, which the template below does not enable.
    network {
      port "gateway" {
        to = 19789
      }
    }

    volume "state" {
      type   = "host"
      source = "talon-state"
    }

    task "talon" {
      driver       = "docker"
      kill_timeout = "60s"
      kill_signal  = "SIGTERM"

      config {
        image           = "talon:latest"
        args            = ["serve", "--config", "/local/talon.yaml"]
        ports           = ["gateway"]
        readonly_rootfs = true
        cap_drop        = ["all"]
        cap_add         = ["sys_admin", "setuid", "setgid", "setpcap", "chown", "kill"]
        security_opt    = ["seccomp=unconfined", "systempaths=unconfined", "apparmor=unconfined"]

        mount {
          type   = "tmpfs"
          target = "/run/talon"
          tmpfs_options {
            mode = 457 # 0711
          }
        }
      }

      volume_mount {
        volume      = "state"
        destination = "/var/lib/talon"
      }

      template {
        destination = "local/talon.yaml"
        data        = <<EOF
runtime_dir: /run/talon
state: { data_dir: /var/lib/talon }
plugins:
  tools:
    plugin_dir: /usr/lib/talon/plugins
# The gateway, behind a proxy that ends TLS. `nomad alloc exec` runs `talon token create` for whoever is to come in.
# gateway:
#   enabled: true
#   address: 0.0.0.0:19789
#   hosts: [talon.example.org]
#   behind_proxy: { addresses: [10.0.0.0/8] }
EOF
      }

      resources {
        cpu    = 500
        memory = 4096
      }
    }
  }
}
