function test_the_first_rule_that_fits_counts()
    local ctx = pre_hook(context { message = "Deploy to PROD" })
    expect(ctx.metadata, { category = "devops", priority = "high" })
    expect(ctx.logs[1].message, "classified as devops/high")
end
