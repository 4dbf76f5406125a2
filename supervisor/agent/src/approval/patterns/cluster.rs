//! Clusters and infrastructure.

use super::built_in_pattern::BuiltInPattern;

pub(super) const PATTERNS: &[BuiltInPattern] = &[
    BuiltInPattern::new(
        "kubectl delete",
        concat!(command!("kubectl|oc"), words!(), r"(?:delete|drain)", end!()),
        &[
            "kubectl delete pod x",
            "kubectl -n prod --context=x delete -f x.yaml",
            "sudo KUBECONFIG=x kubectl \\\n delete ns prod",
            r#"["kubectl","-n","prod","delete","deployment/x"]"#,
            "Kubectl 'delete' pod x",
        ],
        &["kubectl get pods", "kubectl get -l app=delete pods", "kubectl apply -f delete.yaml"],
    ),
    BuiltInPattern::new(
        "helm uninstall",
        concat!(command!("helm"), words!(), r"(?:uninstall|delete|rollback)", end!()),
        &["helm -n x uninstall y"],
        &["helm list"],
    ),
    BuiltInPattern::new(
        "terraform apply",
        concat!(command!("terraform|tofu|terragrunt"), words!(), r"(?:apply|destroy)", end!()),
        &[
            "terraform destroy",
            "terraform -chdir=prod apply -auto-approve",
            "env TF_LOG=1 sudo terraform \\\n \"destroy\" -target x",
            "TOFU apply",
        ],
        &["terraform plan", "terraform plan -out=apply.plan", "terraform plan -destroy"],
    ),
    BuiltInPattern::new(
        "docker prune",
        concat!(
            command!("docker|podman"),
            words!(),
            r"(?:(?:system|volume|image|container|builder|network)\s(?:[^;&|\n]*\s)?prune|volume\s(?:[^;&|\n]*\s)?rm)",
            end!()
        ),
        &["docker system prune -af", "podman volume rm data"],
        &["docker ps", "docker volume ls"],
    ),
];
